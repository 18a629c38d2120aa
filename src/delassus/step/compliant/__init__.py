"""The compliant scheme: one step of time for springs, dampers, constraints and contacts, from soft to rigid."""
