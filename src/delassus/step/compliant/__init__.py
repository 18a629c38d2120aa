"""The compliant scheme: a time step for springs, dampers, constraints and contacts, from soft to rigid."""
