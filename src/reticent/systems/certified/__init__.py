"""Certified private prediction: labels that few records can change."""
