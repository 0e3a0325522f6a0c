"""`python -m mindpulse.cli`, the same as the command `mindpulse`."""

from mindpulse.cli.group import main

if __name__ == "__main__":
    main(prog_name="mindpulse")
