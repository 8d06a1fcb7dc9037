"""The public tasks, one thin module each, and the packages that they call."""
