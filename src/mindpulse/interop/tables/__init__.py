"""CSV, JSON lines and JSON files. `rows` tells which field is the step, the time, the rank."""
