"""Collaborative inference in three processes: a device that releases, a server that learns and
predicts from released values alone, and an auditor who believes neither.
"""
