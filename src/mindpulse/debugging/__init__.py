"""For the moment at a breakpoint: look at a tensor, keep it in the run."""
