"""CSV, JSON and msprobe files in the shapes that are met, written anew; our export read back."""

from __future__ import annotations

import csv
import json
import math
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner

from mindpulse.cli import main
from mindpulse.errors import FormatError
from mindpulse.interop import identify, open_run
from mindpulse.series import Rows, SeriesSpec
from mindpulse.store.folder import create_attempt
from mindpulse.store.run import Run
from mindpulse.store.writer import RankWriter


def opened(folder: Path, text: str, name: str = "metrics.csv") -> Run:
    path = folder / name
    path.write_text(text, "utf-8")
    return open_run(path)


def told(run: Run) -> str:
    return "; ".join(report.problem for report in run.files())


class TestCsv:
    @pytest.mark.parametrize("mark", [",", ";", "\t"])
    def test_delimiters(self, tmp_path: Path, mark: str) -> None:
        rows = [("step", "loss", "lr"), ("1", "2.5", "0.1"), ("2", "nan", ""), ("3", "inf", "1e-3")]
        run = opened(tmp_path, "".join(mark.join(row) + "\n" for row in rows))
        losses = run.series("train_loss")
        assert losses.steps.tolist() == [1, 2, 3]
        assert losses.values[0] == 2.5
        assert math.isnan(losses.values[1])
        assert losses.values[2] == math.inf
        assert run.series("learning_rate").steps.tolist() == [1, 3]
        assert told(run) == ""

    def test_headers_with_quotes_doubles_and_gaps(self, tmp_path: Path) -> None:
        text = '"Step","loss, total",x,x,\n1,"2.5",3,4,5\n2,"1,5",3,4,5\n'
        run = opened(tmp_path, text)
        assert set(run.specs()) == {"loss, total", "x", "x (2)", "column 5"}
        assert run.series("loss, total").values.tolist() == [2.5]
        assert "1 cells that are no numbers left out, the first: '1,5 in line 3" in told(run)

    def test_without_a_header_rows_are_numbered(self, tmp_path: Path) -> None:
        run = opened(tmp_path, "0.5,1\n0.25,2\n")
        assert run.series("column 1").steps.tolist() == [1, 2]
        assert run.series("column 1").values.tolist() == [0.5, 0.25]
        assert "numbered" in told(run)

    def test_header_after_a_number_sign_and_comments(self, tmp_path: Path) -> None:
        run = opened(tmp_path, "# made by a script\n#step,loss\n1,2.5\n# half way\n2,2.25\n")
        assert run.series("train_loss").values.tolist() == [2.5, 2.25]

    def test_columns_of_text_are_no_series(self, tmp_path: Path) -> None:
        run = opened(tmp_path, "step,phase,loss,ok\n1,warmup,2.5,True\n2,main,2.25,False\n")
        assert list(run.specs()) == ["train_loss"]
        assert told(run) == ""

    def test_fractions_of_an_epoch_count_nothing(self, tmp_path: Path) -> None:
        run = opened(tmp_path, "epoch,loss\n0.5,2.5\n1.0,2.25\n")
        assert run.series("train_loss").steps.tolist() == [1, 2]
        assert run.series("epoch").values.tolist() == [0.5, 1.0]

    def test_keras_counts_epochs(self, tmp_path: Path) -> None:
        run = opened(tmp_path, "epoch,accuracy,loss,val_accuracy,val_loss\n0,0.5,2.5,0.5,2.0\n")
        assert set(run.specs()) == {"train_accuracy", "train_loss", "eval_accuracy", "eval_loss"}
        assert run.series("train_loss").steps.tolist() == [0]

    def test_lightning_leaves_cells_empty(self, tmp_path: Path) -> None:
        run = opened(tmp_path, "epoch,step,train_loss,val_loss\n0,49,2.5,\n0,49,,2.25\n0,99,2.0,\n")
        assert run.series("train_loss").steps.tolist() == [49, 99]
        assert run.series("eval_loss").steps.tolist() == [49]
        assert run.attempts == [1]

    def test_tensorboards_download(self, tmp_path: Path) -> None:
        text = "Wall time,Step,Value\n1733269557.5,10,2.5\n1733269558.5,20,2.25\n"
        run = opened(tmp_path, text, "train%2Floss.csv")
        assert run.series("train_loss").values.tolist() == [2.5, 2.25]
        assert run.series("train_loss").wall_times.tolist() == [1733269557.5, 1733269558.5]

    def test_lines_that_do_not_fit_cost_only_themselves(self, tmp_path: Path) -> None:
        run = opened(tmp_path, "step,loss\n1,2.5\n2,2.25,9\n\n3\nx,2.0\n4,1.5\n")
        assert run.series("train_loss").steps.tolist() == [1, 4]
        assert "2 lines with another number of cells than 2 left out" in told(run)
        assert "1 rows without a step left out" in told(run)

    def test_a_last_line_without_end_loses_its_last_cell(self, tmp_path: Path) -> None:
        text = "step,loss,lr\n1,2.5,0.125\n2,2.25,0.0625"
        for cut in range(len("step,loss,lr\n1,2.5,0.125\n"), len(text) + 1):
            run = opened(tmp_path, text[:cut])
            assert run.series("learning_rate").values.tolist() == [0.125]
            assert run.series("train_loss").values.tolist() in ([2.5], [2.5, 2.25])
        quoted = opened(tmp_path, 'step,loss\n"1","2.5"\n"2","2.25"')
        assert quoted.series("train_loss").values.tolist() == [2.5, 2.25]

    def test_restart_and_ranks(self, tmp_path: Path) -> None:
        rows = "".join(
            f"{s},{r},{a}\n" for a, s0 in ((1, 1), (2, 3)) for s in range(s0, 6) for r in (0, 1)
        )
        run = opened(tmp_path, "step,rank,loss\n" + rows)
        assert (run.attempts, run.ranks) == ([1, 2], [0, 1])
        assert run.series("train_loss", rank=1).values.tolist() == [1, 1, 2, 2, 2]

    def test_rows_in_no_order_are_not_restarts(self, tmp_path: Path) -> None:
        steps = np.random.default_rng(3).permutation(1000)
        run = opened(tmp_path, "step,loss\n" + "".join(f"{s},{s / 8}\n" for s in steps))
        assert run.attempts == [1]
        assert run.series("train_loss").steps.tolist() == steps.tolist()
        assert run.series("train_loss").values.tolist() == (steps / 8).tolist()
        assert "taken as rows in no order" in told(run)

    def test_thousands_of_columns(self, tmp_path: Path) -> None:
        values = np.random.default_rng(4).normal(size=(20, 5000))
        names = [f"layer {i} norm" for i in range(5000)]
        path = tmp_path / "wide.csv"
        with path.open("w", newline="") as file:
            writer = csv.writer(file)
            writer.writerow(["step", *names])
            writer.writerows([step, *row] for step, row in enumerate(values.tolist()))
        run = open_run(path)
        assert len(run.specs()) == 5000
        assert run.series("layer 4999 norm").values.tolist() == values[:, 4999].tolist()

    def test_a_time_that_is_a_duration_is_a_series(self, tmp_path: Path) -> None:
        run = opened(tmp_path, "step,time,loss\n1,0.25,2.5\n2,0.5,2.25\n")
        assert run.series("time").values.tolist() == [0.25, 0.5]
        assert np.isnan(run.series("train_loss").wall_times).all()

    def test_times_as_text(self, tmp_path: Path) -> None:
        text = "step,timestamp,loss\n1,2024-05-01T10:00:00.5Z,2.5\n2,2024-05-01 12:00:01+02:00,2\n"
        run = opened(tmp_path, text)
        assert run.series("train_loss").wall_times.tolist() == [1714557600.5, 1714557601.0]

    def test_cells_that_are_no_numbers_are_counted(self, tmp_path: Path) -> None:
        run = opened(tmp_path, "step,loss\n1,2.5\n2,bad\n3,worse\n4,N/A\n")
        assert "2 cells that are no numbers left out, the first: 'bad in line 3" in told(run)
        assert run.files()[0].damaged_rows == 2

    def test_large_steps_are_exact(self, tmp_path: Path) -> None:
        run = opened(tmp_path, f"step,loss\n{2**53 + 1},1\n{2**63 - 1},2\n{2**63},3\n")
        assert run.series("train_loss").steps.tolist() == [2**53 + 1, 2**63 - 1]

    def test_python_numbers_that_are_none(self, tmp_path: Path) -> None:
        run = opened(tmp_path, "step,loss\n1,1_000\n2,2.5\n3,\u0661\n")
        assert run.series("train_loss").values.tolist() == [2.5]

    def test_long_table(self, tmp_path: Path) -> None:
        text = "tag,step,value\nloss,1,2.5\nloss,2,2.25\nlr,1,0.5\nlr,2,0.25\nloss,2,2.0\n"
        run = opened(tmp_path, text)
        assert run.series("train_loss").values.tolist() == [2.5, 2.25, 2.0]
        assert run.series("learning_rate").steps.tolist() == [1, 2]
        assert run.attempts == [1]


class TestJson:
    def test_lines_with_nested_keys(self, tmp_path: Path) -> None:
        text = '{"step": 1, "loss": {"lm": 2.5, "aux": 1}, "note": "3.5", "ok": true, "g": [1]}\n'
        text += '{"step": 2, "loss": {"lm": NaN}, "x": null}\n'
        run = opened(tmp_path, text, "log.jsonl")
        assert set(run.specs()) == {"loss.lm", "loss.aux"}
        assert run.series("loss.lm").values[0] == 2.5
        assert math.isnan(run.series("loss.lm").values[1])

    def test_history_of_wandb(self, tmp_path: Path) -> None:
        rows = [
            {"_step": s, "_runtime": s * 2.0, "_timestamp": 1.7e9 + s, "loss": 1 / (s + 1)}
            for s in range(3)
        ]
        run = opened(
            tmp_path, "".join(json.dumps(row) + "\n" for row in rows), "wandb-history.jsonl"
        )
        assert run.series("train_loss").wall_times.tolist() == [1.7e9, 1.7e9 + 1, 1.7e9 + 2]
        assert run.series("_runtime").values.tolist() == [0, 2, 4]

    def test_a_cut_last_line_and_a_bad_one(self, tmp_path: Path) -> None:
        text = '{"step": 1, "loss": 2.5}\nTraceback\n{"step": 2, "loss": 2.25}\n{"step": 3, "lo'
        run = opened(tmp_path, text, "log.jsonl")
        assert run.series("train_loss").steps.tolist() == [1, 2]
        assert "1 lines that are no JSON left out, the first: 'line 2: Traceback'" in told(run)
        assert "no line end" in told(run)

    def test_an_array_of_objects(self, tmp_path: Path) -> None:
        rows = [{"iteration": 10 * i, "loss": i / 4} for i in range(4)]
        run = opened(tmp_path, json.dumps(rows, indent=2), "log.json")
        assert run.series("train_loss").steps.tolist() == [0, 10, 20, 30]

    def test_lists_of_keras(self, tmp_path: Path) -> None:
        run = opened(tmp_path, json.dumps({"loss": [2.5, 2.0], "val_loss": [2.25, 1.5]}), "h.json")
        assert run.series("train_loss").values.tolist() == [2.5, 2.0]
        assert run.series("eval_loss").steps.tolist() == [1, 2]

    def test_golden_values_in_lists(self, tmp_path: Path) -> None:
        curve = {"start_step": 0, "end_step": 10, "step_interval": 5, "values": [10.5, 9.5, "nan"]}
        run = opened(tmp_path, json.dumps({"lm loss": curve}, indent=1), "golden.json")
        assert run.series("train_loss").steps.tolist() == [0, 5]

    def test_one_value_a_line(self, tmp_path: Path) -> None:
        rows = [("a", 1, 2.5), ("a", 2, "nan"), ("b", 1, 1.5), ("a", 1, 0.5)]
        text = "".join(json.dumps({"tag": t, "step": s, "value": v}) + "\n" for t, s, v in rows)
        run = opened(tmp_path, text, "points.jsonl")
        assert run.series("a").values.tolist() == [0.5]
        assert len(run.series("a", attempt=1)) == 2
        assert run.series("b", attempt=1).values.tolist() == [1.5]

    def test_two_keys_of_the_same_name_stay_two(self, tmp_path: Path) -> None:
        run = opened(tmp_path, '{"step": 1, "a": {"b": 1.5}, "a.b": 2.5}\n', "l.jsonl")
        assert run.series("a.b").values.tolist() == [1.5]
        assert run.series("a.b'").values.tolist() == [2.5]

    def test_numbers_that_no_float_holds(self, tmp_path: Path) -> None:
        huge = "1" + "0" * 400
        text = f'{{"step": 1, "loss": {huge}}}\n{{"step": 2, "wall_time": {huge}, "loss": 1.5}}\n'
        assert opened(tmp_path, text, "l.jsonl").series("train_loss").steps.tolist() == [2]

    def test_nested_too_deep(self, tmp_path: Path) -> None:
        text = '{"log_history": ' + "[" * 100_000
        with pytest.raises(FormatError, match=r"nested too deep|not whole JSON"):
            opened(tmp_path, text, "trainer_state.json")

    def test_a_state_that_is_being_written(self, tmp_path: Path) -> None:
        with pytest.raises(FormatError, match=r"not whole JSON.*try again"):
            opened(tmp_path, '{"log_history": [{"step": 1, "lo', "trainer_state.json")


class TestTrainerState:
    def test_newest_checkpoint_of_a_folder(self, tmp_path: Path) -> None:
        for step in (900, 1000):
            folder = tmp_path / f"checkpoint-{step}"
            folder.mkdir()
            history = [{"step": s, "loss": s / 8} for s in range(100, step + 1, 100)]
            (folder / "trainer_state.json").write_text(json.dumps({"log_history": history}))
        found = identify(tmp_path)
        assert found.path.parent.name == "checkpoint-1000"
        assert "newest of 2 checkpoints" in found.why
        assert len(found.read().series("train_loss")) == 10

    def test_entries_without_a_step(self, tmp_path: Path) -> None:
        history = [{"loss": 2.5}, {"step": 5, "loss": 2.25}, "x", {"step": None, "loss": 1}]
        run = opened(tmp_path, json.dumps({"log_history": history}), "trainer_state.json")
        assert run.series("train_loss").values.tolist() == [2.25]
        assert "2 entries without a step left out" in told(run)


class TestMsprobe:
    V1 = (
        "vpp_stage,name,step,norm,nans,shape,dtype\n"
        '0,decoder.0.weight,0,1.5,0,"(4, 4)",torch.float32\n'
        '0,decoder.1.weight,0,2.5,0,"(4, 4)",torch.float32\n'
        '0,decoder.0.weight,1,nan,3,"(4, 4)",torch.float32\n'
    )

    def test_first_generation(self, tmp_path: Path) -> None:
        run = opened(tmp_path, self.V1, "grad_reduced_0-1.csv")
        found = run.series("grad_norm_param")
        assert found.spec.axes == ("param",)
        assert found.spec.columns == (("decoder.0.weight",), ("decoder.1.weight",))
        assert found.steps.tolist() == [0, 1]
        np.testing.assert_array_equal(found.values, [[1.5, 2.5], [np.nan, np.nan]])
        assert run.series("grad_reduced_nans").values[1, 0] == 3
        assert run.tags["alias.grad_norm_param"] == "grad_reduced_norm"

    def test_second_generation(self, tmp_path: Path) -> None:
        text = "vpp_stage,step,module_name,scope,micro_step,min,max,mean,norm,nans\n"
        text += "0,3,layers.0,forward,0,-1,1,0.5,2.5,0\n0,3,layers.0,forward,1,-1,1,0.25,2.0,0\n"
        run = opened(tmp_path, text, "module_0-9.csv")
        found = run.series("module_mean")
        assert found.spec.axes == ("module", "micro_step")
        assert found.values.tolist() == [[0.5, 0.25]]

    def test_folder_with_ranks_and_spans_of_steps(self, tmp_path: Path) -> None:
        for rank in (0, 1):
            folder = tmp_path / f"Nov30_10-00-00-rank{rank}"
            folder.mkdir()
            (folder / "grad_reduced_0-1.csv").write_text(self.V1)
            later = self.V1.replace(",0,1.5", ",2,7.5").splitlines()[:2]
            (folder / "grad_reduced_2-3.csv").write_text("\n".join(later) + "\n")
        run = open_run(tmp_path)
        assert run.ranks == [0, 1]
        found = run.series("grad_norm_param", rank=1)
        assert found.steps.tolist() == [0, 1, 2]
        assert found.values[2, 0] == 7.5


@pytest.fixture
def recorded(tmp_path: Path) -> Path:
    """A run of ours with odd values, wide series and two ranks."""
    rng = np.random.default_rng(7)
    steps = np.arange(50) * 3
    times = 1.7e9 + np.arange(50) / 7
    odd = rng.normal(size=(50, 1)) * 10.0 ** rng.integers(-300, 300, (50, 1))
    odd[3:7, 0] = [np.nan, np.inf, -np.inf, 5e-324]
    heads = SeriesSpec("attn_focus", "vector", axes=("layer", "head"),
                       columns=tuple((str(i), str(j)) for i in range(2) for j in range(3)),
                       dtype="float32")  # fmt: skip
    wide = rng.normal(size=(50, 6)).astype("float32")
    wide[1, 2] = np.nan
    for rank in (0, 1):
        folder = create_attempt(tmp_path / "run", rank)
        writer = RankWriter(folder, rank, 1)
        writer.append(SeriesSpec("my metric/ü"), Rows(steps, times, odd + rank))
        writer.append(heads, Rows(steps, times, wide))
        writer.close()
    return tmp_path / "run"


@pytest.mark.parametrize(
    "options", [["--format", "csv"], ["--format", "json"], ["--layout", "long"]]
)
def test_our_export_is_read_back_bit_for_bit(
    recorded: Path, tmp_path: Path, options: list[str]
) -> None:
    target = tmp_path / "exported"
    call = ["export", str(recorded), *options, "--output-dir", str(target)]
    done = CliRunner().invoke(main, call)
    assert done.exit_code == 0, done.output
    ours, back = open_run(recorded), open_run(target)
    assert set(back.specs()) == set(ours.specs())
    assert back.ranks == ours.ranks
    for tag in ours.specs():
        for rank in ours.ranks:
            want, got = ours.series(tag, rank=rank), back.series(tag, rank=rank)
            assert got.spec.columns == want.spec.columns
            np.testing.assert_array_equal(got.steps, want.steps)
            np.testing.assert_array_equal(got.wall_times, want.wall_times)
            assert got.values.astype(want.values.dtype).tobytes() == want.values.tobytes()
