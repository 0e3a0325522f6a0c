"""Text logs in the shapes that tools print, written anew: values, attempts, ranks, cut ends."""

from __future__ import annotations

import gzip
import math
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from memory import peak_memory
from mindpulse.errors import FormatError
from mindpulse.interop import identify, open_run
from mindpulse.store.run import Run

MEGATRON = (
    " iteration {step:8d}/  1000 | consumed samples: {samples:12d} | elapsed time per iteration"
    " (ms): {ms} | learning rate: 1.500E-04 | global batch size:   16 |{loss} loss scale: {scale} |"
    " grad norm: {norm} | number of skipped iterations:   0 | number of nan iterations:   0 |\n"
)
MINDFORMERS = (
    "2025-04-07 15:34:{s:02d},000 - [mindformers/core/callback/callback.py:529] - INFO - {{ Epoch:["
    "{epoch:3d}/  2], step:[{step:5d}/   19], loss: {loss}, per_step_time: {ms}ms, lr: 1e-05, "
    "overflow cond: {over}, loss_scale: 1024.0, global_norm: [{norm}], "
    "train_throughput_per_npu: 170.7T\n"
)


def write(folder: Path, text: str | bytes, name: str = "train.log") -> Path:
    path = folder / name
    path.write_bytes(text.encode() if isinstance(text, str) else text)
    return path


def opened(folder: Path, text: str | bytes, name: str = "train.log") -> Run:
    return open_run(write(folder, text, name))


def told(run: Run) -> str:
    return "; ".join(report.problem for report in run.files())


def iteration(
    step: int, loss: str | None = "2.5E+00", norm: str = "1.250", scale: str = "64.0"
) -> str:
    field = "" if loss is None else f" lm loss: {loss} |"
    return MEGATRON.format(
        step=step, samples=16 * step, ms="250.0", loss=field, norm=norm, scale=scale
    )


def record(
    step: int, loss: str = "2.500", epoch: int = 1, norm: str = "1.5", over: str = "False"
) -> str:
    return MINDFORMERS.format(
        s=step % 60, epoch=epoch, step=step, loss=loss, ms=500, norm=norm, over=over
    )


class TestMegatron:
    def test_fields_get_our_names_and_units(self, tmp_path: Path) -> None:
        run = opened(tmp_path, iteration(1) + iteration(2, "2.25E+00"))
        assert run.series("train_loss").values.tolist() == [2.5, 2.25]
        assert run.series("train_loss").steps.tolist() == [1, 2]
        assert run.series("step_time_s").values.tolist() == [0.25, 0.25]
        assert run.specs()["step_time_s"].unit == "s"
        assert run.series("loss_scale").values.tolist() == [64.0, 64.0]
        assert run.tags["alias.step_time_s"] == "elapsed time per iteration (ms)"
        assert np.isnan(run.series("train_loss").wall_times).all()
        assert math.isnan(run.created)

    def test_nan_and_infinity_are_values(self, tmp_path: Path) -> None:
        run = opened(tmp_path, iteration(1, "nan") + iteration(2, "inf", norm="nan"))
        assert np.isnan(run.series("train_loss").values[0])
        assert run.series("train_loss").values[1] == math.inf
        assert np.isnan(run.series("grad_norm").values[1])

    def test_a_skipped_iteration_has_no_loss(self, tmp_path: Path) -> None:
        run = opened(tmp_path, iteration(1, None) + iteration(2))
        assert run.series("train_loss").steps.tolist() == [2]
        assert run.series("loss_scale").steps.tolist() == [1, 2]

    def test_a_restart_is_a_new_attempt_that_supersedes(self, tmp_path: Path) -> None:
        text = "".join(iteration(step, "3.0E+00") for step in range(1, 8))
        text += (
            " validation loss at iteration 6 | lm loss value: 9.0E+00 | lm loss PPL: 8.1E+03 |\n"
        )
        text += "".join(iteration(step, "2.0E+00") for step in range(5, 7))
        run = opened(tmp_path, text)
        assert run.attempts == [1, 2]
        assert run.series("train_loss").values.tolist() == [3, 3, 3, 3, 2, 2]
        assert run.series("train_loss", attempt=1).steps.tolist() == list(range(1, 8))
        assert len(run.series("train_loss", attempt="all")) == 9
        # The evaluation at 6 was of the first start, which the second replaced from step 5 on.
        assert len(run.series("eval_loss", attempt=1)) == 1
        assert len(run.series("eval_loss")) == 0
        assert [(n.kind, n.attempt, n.step) for n in run.notes()] == [("start", 2, 5)]

    def test_records_wrapped_by_a_terminal(self, tmp_path: Path) -> None:
        text = "".join(iteration(step, f"{step}.0E+00") for step in (1, 2, 3))
        width = 70
        wrapped = "".join(
            "\n".join(row[i : i + width] for i in range(0, len(row), width)) + "\n"
            for row in text.splitlines()
        )
        run = opened(tmp_path, wrapped)
        assert run.series("train_loss").steps.tolist() == [1, 2, 3]

    def test_two_records_on_one_line(self, tmp_path: Path) -> None:
        run = opened(tmp_path, iteration(1).rstrip("\n") + iteration(2))
        assert run.series("grad_norm").steps.tolist() == [1, 2]

    def test_the_record_that_is_being_written_counts_as_far_as_it_goes(
        self, tmp_path: Path
    ) -> None:
        whole = iteration(1)
        last = iteration(2, "2.25E+00")
        for cut in range(len(last)):
            run = opened(tmp_path, whole + last[:cut])
            losses = run.series("train_loss")
            assert losses.values.tolist() in ([2.5], [2.5, 2.25]), last[:cut]
            assert set(run.series("loss_scale").values) == {64.0}, last[:cut]
            assert set(run.series("grad_norm").values) == {1.25}, last[:cut]

    def test_old_style_without_colons(self, tmp_path: Path) -> None:
        text = " iteration      100/  1000 | elapsed time per iteration (ms): 12.5 | learning rate"
        text += " 1.500E-04 | lm loss 7.125E+00 | loss scale 65536.0 |\n"
        run = opened(tmp_path, text * 1)
        assert run.series("train_loss").values.tolist() == [7.125]
        assert run.series("loss_scale").values.tolist() == [65536.0]

    def test_variants_of_other_frameworks(self, tmp_path: Path) -> None:
        text = (
            "[default0]: [2025-05-27 15:23:07] iteration        1/    24000 | consumed samples:   "
            "8 | elapsed time per iteration (ms): 250.0/300.0 | loss: 1.5E+00 | grad norm: 5.5 |\n"
        )
        run = opened(tmp_path, text)
        assert run.series("train_loss").values.tolist() == [1.5]
        assert run.series("step_time_s").values.tolist() == [0.25]
        assert run.series("train_loss").wall_times.tolist() == [1748359387.0]

    def test_memory_of_ranks_on_one_line(self, tmp_path: Path) -> None:
        memory = "[Rank {}] (after 1 iterations) memory (MB) | allocated: {} | max allocated: 3.0"
        text = iteration(1) + memory.format(6, 1.5) + memory.format(7, 2.5) + "\n"
        run = opened(tmp_path, text)
        assert run.ranks == [0, 6, 7]
        assert run.series("memory_allocated", rank=7).values.tolist() == [2.5 * 2**20]


class TestMindFormers:
    def test_epochs_count_on(self, tmp_path: Path) -> None:
        run = opened(tmp_path, record(19, "3.0") + record(1, "2.0", epoch=2))
        assert run.series("train_loss").steps.tolist() == [19, 20]
        assert run.series("epoch").values.tolist() == [1, 2]
        assert run.series("tflops_per_device").values.tolist() == [170.7, 170.7]
        assert run.series("step_time_s").values.tolist() == [0.5, 0.5]

    def test_times_are_read_as_utc_and_said_to_be(self, tmp_path: Path) -> None:
        run = opened(tmp_path, record(1))
        assert run.series("train_loss").wall_times.tolist() == [1744040041.0]
        assert run.tags["time_zone"] == "not stated in the file; read as UTC"

    def test_older_style(self, tmp_path: Path) -> None:
        text = "INFO - Epoch:[  1/  1], step:[   10/   50], loss:[7.125/7.250], time:1234.5 ms, "
        text += "lr:1e-05, overflow cond: True, loss_scale: 65536.0\n"
        run = opened(tmp_path, text)
        assert run.series("train_loss").values.tolist() == [7.125]
        assert run.series("learning_rate").values.tolist() == [1e-5]
        assert run.series("overflow").values.tolist() == [1.0]

    def test_oldest_styles(self, tmp_path: Path) -> None:
        text = (
            "Epoch:[  0/  1], step:[    1/   10], loss:[115.5/115.5], time:242.5 ms, lr:0.00500\n"
            "Epoch:[  0/  1], step:[    2/   10], loss:[86.25/100.9], time:0.75 ms, lr:[0.]\n"
            "Epoch:[  0/  1], step:[    3/   10], loss:[80.5/90.5], time:0.5 ms, lr:Not Set LR.\n"
            "Epoch time: 5.000 ms, per step time: 0.500 ms, avg loss: 100.9\n"
        )
        run = opened(tmp_path, text)
        assert run.series("train_loss").values.tolist() == [115.5, 86.25, 80.5]
        assert run.series("learning_rate").values.tolist() == [0.005, 0.0]
        assert run.series("step_time_s").values.tolist() == [0.2425, 0.00075, 0.0005]
        assert told(run) == "'per step time' keeps its name: 'time' is 'step_time_s'"

    def test_separate_losses_and_throughput(self, tmp_path: Path) -> None:
        text = record(1).replace("per_step", "lm_loss: 2.25, aux_loss: 0.25, per_step")
        text += " - INFO -    0.0% |                  | 0.00636 samples/s/p  23 days, 15:26:22 }\n"
        run = opened(tmp_path, text)
        assert run.series("train_loss").values.tolist() == [2.5]
        assert run.series("lm_loss").values.tolist() == [2.25]
        assert run.series("samples_per_s_per_device").values.tolist() == [0.00636]

    def test_style_with_bars(self, tmp_path: Path) -> None:
        text = "Epoch: 0 | Step: {} | Loss: {}.5 | overflow cond: False | lr: 1e-05 | "
        text += "loss scale: 64.0 | cost time: 0.75\n"
        run = opened(tmp_path, text.format(1, 3) + text.format(2, 2))
        assert run.series("train_loss").values.tolist() == [3.5, 2.5]
        assert run.series("step_time_s").values.tolist() == [0.75, 0.75]
        assert run.series("loss_scale").values.tolist() == [64.0, 64.0]

    def test_a_value_that_is_none_is_not_known(self, tmp_path: Path) -> None:
        run = opened(tmp_path, record(1).replace("[1.5]", "None"))
        assert "grad_norm" not in run.specs()
        assert told(run) == ""

    def test_a_damaged_value_is_left_out_and_counted(self, tmp_path: Path) -> None:
        run = opened(tmp_path, record(1) + record(2).replace("[1.5]", "[1 5]"))
        assert run.series("grad_norm").steps.tolist() == [1]
        assert run.series("train_loss").steps.tolist() == [1, 2]
        assert "1 values left out, the first: 'global_norm: [1 5]'" in told(run)
        assert not run.files()[0].valid

    def test_a_restart_from_a_checkpoint(self, tmp_path: Path) -> None:
        text = "".join(record(step) for step in range(1, 11))
        text += "".join(record(step, "1.000") for step in range(6, 13))
        run = opened(tmp_path, text)
        assert run.attempts == [1, 2]
        assert run.series("train_loss").values.tolist() == [2.5] * 5 + [1.0] * 7

    def test_twenty_restarts(self, tmp_path: Path) -> None:
        text = ""
        for attempt in range(20):
            text += "".join(record(s, f"{attempt}.0") for s in range(1 + attempt // 2, 19))
        run = opened(tmp_path, text)
        assert run.attempts == list(range(1, 21))
        expected = [float(min(19, 2 * s - 1)) for s in range(1, 19)]
        assert run.series("train_loss").values.tolist() == expected

    def test_ranks_that_print_into_one_file_are_no_restarts(self, tmp_path: Path) -> None:
        steps = (1, 1, 1, 2, 1, 2, 2, 3, 2, 3, 3, 3)
        text = "".join(f"epoch: 1 step: {s}, loss is {s}.5\n" for s in steps)
        run = opened(tmp_path, text)
        assert run.attempts == [1]
        assert sorted(run.series("train_loss").steps.tolist()) == sorted(steps)

    def test_the_length_of_an_epoch_is_said_to_be_unsure(self, tmp_path: Path) -> None:
        text = "".join(f"epoch: {e} step: 20, loss is 1.5\n" for e in (1, 2, 3))
        run = opened(tmp_path, text)
        assert run.series("train_loss").steps.tolist() == [20, 40, 60]
        assert "does not say how many steps an epoch has: taken as 20" in told(run)

    def test_workers_in_a_folder_are_ranks(self, tmp_path: Path) -> None:
        for rank in range(3):
            write(tmp_path, record(1, f"{rank}.5"), f"worker_{rank}.log")
        run = open_run(tmp_path)
        assert run.ranks == [0, 1, 2]
        assert [run.series("train_loss", rank=r).values[0] for r in run.ranks] == [0.5, 1.5, 2.5]
        assert len(run.files()) == 3


class TestOthers:
    def test_deepspeed(self, tmp_path: Path) -> None:
        text = (
            "[2024-05-01 10:00:00,500] [INFO] [logging.py:96:log_dist] [Rank 0] step=10, skipped=2,"
            " lr=[0.001, 0.002], mom=[(0.9, 0.999)]\n"
            "steps: 10 loss: 2.5000 iter time (s): 0.512 samples/sec: 31.250\n"
            "steps: 20 loss: 2.2500 iter time (s): 0.500 samples/sec: 32.000\n"
        )
        run = opened(tmp_path, text)
        assert run.series("train_loss").values.tolist() == [2.5, 2.25]
        assert run.series("learning_rate").values.tolist() == [0.001]
        assert run.series("step_time_s").values.tolist() == [0.512, 0.5]
        assert run.series("learning_rate").wall_times.tolist() == [1714557600.5]

    def test_deepspeed_with_several_losses(self, tmp_path: Path) -> None:
        text = (
            "steps: 200 loss: 5.5 lm loss: 5.25 moe loss: 0.25 iter time (s): 0.9 samples/sec: 9\n"
            "[2024-08-15 21:12:21,418] [INFO] [timer.py:260:stop] epoch=0/micro_step=1200/"
            "global_step=600, RunningAvgSamplesPerSec=51.5, CurrSamplesPerSec=56.25, "
            "MemAllocated=15.75GB, MaxMemAllocated=43.25GB\n"
        )
        run = opened(tmp_path, text)
        assert run.series("train_loss").values.tolist() == [5.5]
        assert run.series("lm loss").values.tolist() == [5.25]
        assert run.series("MemAllocated (GB)").values.tolist() == [15.75]
        assert run.series("CurrSamplesPerSec").steps.tolist() == [600]

    def test_trainer_console_with_texts_and_progress_bars(self, tmp_path: Path) -> None:
        text = (
            "  0%|          | 0/100 [00:00<?, ?it/s]\r 10%|█  | 10/100 [00:01<00:09]"
            "{'loss': '0.75', 'grad_norm': 'nan', 'learning_rate': '0.001', 'epoch': '0.1'}\n"
            "{'eval_loss': 0.5, 'eval_runtime': 1.5, 'epoch': 0.1}\n"
            "{'loss': 0.5, 'grad_norm': inf, 'learning_rate': 0.0005, 'epoch': 0.2}\n"
            "{'train_runtime': 12.5, 'train_loss': 0.625, 'epoch': 0.2}\n"
        )
        run = opened(tmp_path, text)
        assert run.series("train_loss").values.tolist() == [0.75, 0.5]
        assert run.series("eval_loss").steps.tolist() == [1]
        assert run.series("train_loss_mean").values.tolist() == [0.625]
        assert run.series("grad_norm").values[1] == math.inf

    def test_dllogger(self, tmp_path: Path) -> None:
        row = "DLL 2020-05-29 11:31:45.5{} - Training Epoch: 0 Training Iteration: {}  "
        row += "average_loss : 2.5  step_loss : {}  learning_rate : {}"
        text = row.format(0, 10, 3.5, 0.25) + " \n" + row.format(1, 20, 3.25, 0.2)
        run = opened(tmp_path, text)
        assert run.series("train_loss").values.tolist() == [3.5, 3.25]
        assert run.series("learning_rate").values.tolist() == [0.25]
        assert "no line end" in told(run)
        assert run.files()[0].valid  # a training that is killed leaves that

    def test_galore_without_the_number_of_micro_steps(self, tmp_path: Path) -> None:
        run = opened(tmp_path, "loss at 4 2.5\nloss at 8 2.25\n")
        assert "train_loss" not in run.specs()
        assert run.series("loss at").steps.tolist() == [4, 8]
        assert "counts micro steps" in told(run)

    def test_pairs(self, tmp_path: Path) -> None:
        run = opened(tmp_path, "1 8.5\n2 7.5\n3 7.25", "losses.txt")
        assert run.series("train_loss").values.tolist() == [8.5, 7.5]

    def test_errors_become_notes(self, tmp_path: Path) -> None:
        text = record(1) + "[rank0]: torch.OutOfMemoryError: Tried to allocate 2 GiB\n"
        run = opened(tmp_path, text)
        assert [note.kind for note in run.notes()] == ["error"]


class TestFiles:
    @pytest.mark.parametrize("encoding", ["utf-8-sig", "utf-16", "utf-16-le", "utf-16-be"])
    def test_encodings(self, tmp_path: Path, encoding: str) -> None:
        run = opened(tmp_path, (record(1) + record(2)).encode(encoding))
        assert run.series("train_loss").steps.tolist() == [1, 2]

    def test_line_ends_of_windows(self, tmp_path: Path) -> None:
        run = opened(tmp_path, (record(1) + record(2)).replace("\n", "\r\n"))
        assert run.series("grad_norm").values.tolist() == [1.5, 1.5]

    def test_gzip_and_one_that_is_still_written(self, tmp_path: Path) -> None:
        rows = "".join(record(step) for step in range(1, 19)) * 50
        packed = gzip.compress(rows.encode())
        assert len(opened(tmp_path, packed, "a.log.gz").series("train_loss", attempt="all")) == 900
        cut = opened(tmp_path, packed[: len(packed) // 2], "b.log.gz")
        assert 1 <= len(cut.series("train_loss", attempt="all")) < 900

    def test_damaged_gzip_says_so(self, tmp_path: Path) -> None:
        rows = "".join(record(step, str(step**0.5)) for step in range(1, 19)) * 200
        packed = bytearray(gzip.compress(rows.encode()))
        packed[400:440] = bytes(40)
        with pytest.raises(FormatError, match="cannot be unpacked"):
            identify(write(tmp_path, bytes(packed), "c.log.gz")).read()

    def test_colours_of_a_terminal(self, tmp_path: Path) -> None:
        run = opened(tmp_path, "\x1b[32mepoch: 1 step: 1,\x1b[0m loss is 1.5\n")
        assert run.series("train_loss").values.tolist() == [1.5]

    def test_a_record_far_behind_the_beginning(self, tmp_path: Path) -> None:
        text = "loading shard 12345 of the data\n" * 150_000 + iteration(1)
        found = identify(write(tmp_path, text))
        assert (found.kind, found.why) == ("megatron-log", "by the step that line 150001 prints")

    def test_a_huge_line_is_no_trouble(self, tmp_path: Path) -> None:
        run = opened(tmp_path, iteration(1) + "x" * (70 << 20) + "\n" + iteration(2))
        assert run.series("train_loss").steps.tolist() == [1, 2]

    def test_what_grows_is_read_as_far_as_it_is_whole(self, tmp_path: Path) -> None:
        text = "".join(record(step, "1.234") for step in range(1, 4))
        for end in range(len(text) - 200, len(text) + 1):
            run = opened(tmp_path, text[:end])
            assert set(run.series("train_loss").values) == {1.234}
            assert set(run.series("grad_norm").values) == {1.5}

    @pytest.mark.parametrize("print_step", [iteration, record])
    def test_memory_is_bounded_by_the_size(
        self, tmp_path: Path, print_step: Callable[[int], str]
    ) -> None:
        path = write(tmp_path, "".join(print_step(step) for step in range(1, 10_000)))
        most = 2 * path.stat().st_size + (4 << 20)
        peak, run = peak_memory(lambda: open_run(path), most)
        assert len(run.series("train_loss")) == 9999
        assert peak <= most

    @pytest.mark.parametrize("digits", ["9" * 19, "9" * 25, "9" * 5000])
    def test_a_step_that_no_step_can_be(self, tmp_path: Path, digits: str) -> None:
        text = iteration(1) + iteration(2).replace("       2/", digits + "/") + iteration(3)
        run = opened(tmp_path, text)
        assert run.series("train_loss").steps.tolist() == [1, 3]
        assert "1 rows with a step or rank that is none left out" in told(run)
