"""What the training can be asked for: one file per kind of action.

verb        the protocol of an action, and how it is refused
state       copies of weights, moments and counters in host memory
rate        scale_lr                  skip        skip_step
keeping     keep, rollback            clip        set_clip, and `ClipNorm`
looking     burst, snapshot, stop     saving      checkpoint, free_memory
actions     request -> answer, and undo
duties      hears requests, has them done between two steps
"""
