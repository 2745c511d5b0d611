"""The front doors: scikit-learn estimators with release, guarantee, card, save and load."""
