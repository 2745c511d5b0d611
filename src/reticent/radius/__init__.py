"""The meaning of a radius: the public rows within it, and the caps of a guarantee for them."""

from reticent.radius.survey import AtRadius, Caps, RadiusSurvey, Rule, survey_radius

__all__ = ["AtRadius", "Caps", "RadiusSurvey", "Rule", "survey_radius"]
