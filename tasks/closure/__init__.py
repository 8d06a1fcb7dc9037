"""Which headers a unit sees: directives, include paths, depfiles, what make and ninja recorded."""
