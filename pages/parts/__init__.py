"""What several pages share: the session's state, jobs, charts, pictures, words."""
