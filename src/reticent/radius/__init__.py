"""What a radius means: which public rows lie within it, and what a guarantee says about them."""

from reticent.radius.survey import AtRadius, Caps, RadiusSurvey, Rule, survey_radius

__all__ = ["AtRadius", "Caps", "RadiusSurvey", "Rule", "survey_radius"]
