"""Makes `.venv` with everything the demo and the tests need; says clearly what is missing.

    python3 tools/bootstrap.py [--venv DIR] [--extras demo,dev] [--for demo|test]

Standard library only, and old syntax on purpose: it must be able to explain itself to any Python 3.
"""

import argparse
import hashlib
import os
import platform
import shutil
import subprocess
import sys

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
LOWEST, BEYOND = (3, 10), (3, 13)
NEEDED_BYTES = 4 * 1024**3
MACHINES = ("x86_64", "aarch64")
VERIFY = """
import sys, numpy
if int(numpy.__version__.split(".")[0]) >= 2:
    sys.exit("NumPy %s is installed, but MindSpore's PyNative gradients fail with NumPy 2: "
             "run  %s -m pip install 'numpy<2'" % (numpy.__version__, sys.executable))
import mindspore, click, rich, google_crc32c, mindpulse
"""


def check_machine(version, system, machine):
    """What is wrong with this interpreter or machine; '' if nothing."""
    seen = "%d.%d" % version[:2]
    if not LOWEST <= tuple(version[:2]) < BEYOND:
        return (
            "Python %s: MindSpore 2.10 has wheels for 3.10, 3.11 and 3.12 only. Install one of "
            "them and run  make PYTHON=python3.11 ..." % seen
        )
    if system != "Linux" or machine not in MACHINES:
        return "%s on %s: MindSpore has wheels for Linux on %s" % (
            system, machine, " and ".join(MACHINES)
        )  # fmt: skip
    return ""


def check_space(free_bytes, folder):
    """What is wrong with the disk; '' if nothing."""
    if free_bytes < NEEDED_BYTES:
        return "%.1f GB free in %s: MindSpore and its friends need about %.0f GB" % (
            free_bytes / 1e9, folder, NEEDED_BYTES / 1e9
        )  # fmt: skip
    return ""


def other_python():
    """A Python from 3.10 to 3.12 on PATH, '' if there is none."""
    for minor in (11, 12, 10):
        path = shutil.which("python3.%d" % minor)
        if path and subprocess.call([path, "-c", "pass"], stderr=subprocess.DEVNULL) == 0:
            return path
    return ""


def fail(message):
    """Ends with the message and exit code 2."""
    sys.stderr.write("\n  Cannot set up MindPulse: %s\n\n" % message)
    sys.exit(2)


def run(command, hint):
    """Runs a command; ends with the hint if it fails."""
    if "\n" not in command[-1]:
        print("+ " + " ".join(command), flush=True)
    if subprocess.call(command) != 0:
        fail(hint)


def stamp_text(extras):
    """Changes whenever what has to be installed changes."""
    with open(os.path.join(ROOT, "pyproject.toml"), "rb") as file:
        return hashlib.sha256(file.read() + extras.encode()).hexdigest()


def make_venv(venv):
    """A new virtual environment, made by this interpreter."""
    free = shutil.disk_usage(os.path.dirname(os.path.abspath(venv))).free
    problem = check_space(free, os.path.dirname(os.path.abspath(venv)))
    if problem:
        fail(problem)
    run(
        [sys.executable, "-m", "venv", venv],
        "this Python cannot make virtual environments; on Debian or Ubuntu run  "
        "apt-get install python3-venv",
    )


def main():
    """Checks, installs once, and leaves a stamp."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--venv", default=os.path.join(ROOT, ".venv"))
    parser.add_argument("--extras", default="demo,dev")
    options = parser.parse_args()
    problem = check_machine(sys.version_info, platform.system(), platform.machine())
    if problem:
        better = other_python()
        if "wheels for 3.10" in problem and better:
            os.execv(better, [better, *sys.argv])
        fail(problem)
    python = os.path.join(options.venv, "bin", "python")
    stamp = os.path.join(options.venv, ".mindpulse-installed")
    wanted = stamp_text(options.extras)
    if os.path.exists(stamp) and os.path.exists(python):
        with open(stamp) as file:
            if file.read() == wanted:
                return
    if not os.path.exists(python):
        make_venv(options.venv)
    print("Installing MindSpore and the rest: about a minute and 3 GB, once.", flush=True)
    target = "%s[%s]" % (ROOT, options.extras)
    run(
        [python, "-m", "pip", "install", "--disable-pip-version-check", "-q", "-e", target],
        "pip could not install the packages above; check the network or the package index, then "
        "try again. A machine without a MindSpore wheel is named in pip's message",
    )
    run(
        [python, "-c", VERIFY], "the installed packages do not work together, see the message above"
    )
    with open(stamp, "w") as file:
        file.write(wanted)


if __name__ == "__main__":
    main()
