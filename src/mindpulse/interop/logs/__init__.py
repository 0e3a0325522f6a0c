"""Text logs: what was printed while a training ran. `text_log` has what all of them share."""
