"""What steps are made of: the state, the history of a rule, stages, when iterations end."""
