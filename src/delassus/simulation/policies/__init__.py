"""Policies: functions of a user that are compiled into the control period."""
