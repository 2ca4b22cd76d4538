"""pytest and unittest: collection, parameters, fixtures, marks, hooks, and what tests put in the place of something."""
