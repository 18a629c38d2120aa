"""Answers by general solvers of other people: slow, independent, and an extra to install."""
