"""A training that is killed: records and says, line by line, up to which step all is written."""

from __future__ import annotations

import sys
import time

import numpy as np

from mindpulse.recorder import Recorder
from mindpulse.series import Rows
from series_samples import FOCUS


def main(run_dir: str) -> None:
    recorder = Recorder(run_dir, flush_interval=0.05)
    for step in range(1, 1_000_000):
        recorder.add_scalars(step, {"train_loss": float(step), "learning_rate": step / 2})
        values = np.full((1, FOCUS.width), step, np.float32)
        recorder.write(FOCUS, Rows(np.array([step]), np.array([time.time()]), values))
        if step % 7 == 0 and recorder.flush():
            print(step, flush=True)


if __name__ == "__main__":
    main(sys.argv[1])
