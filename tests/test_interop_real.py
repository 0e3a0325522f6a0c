"""Files that other people's trainings left: exactly the values that an independent reader found.

The expected values stand in the INDEX.md beside the files; they were computed by other means.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from mindpulse.errors import FormatError, UsageError
from mindpulse.health import Health, score
from mindpulse.interop import identify, open_run
from mindpulse.rules.load import load_rules
from mindpulse.store.run import Run

REAL = Path(__file__).parent.parent.parent / "shared" / "real"
pytestmark = pytest.mark.skipif(not REAL.is_dir(), reason="needs ../shared/real")


def opened(name: str) -> Run:
    return open_run(REAL / name)


def told(run: Run) -> str:
    return "; ".join(report.problem for report in run.files())


def facts(run: Run, tag: str, attempt: int | str | None = None) -> tuple[int, float, float, float]:
    """Number of values, first, last, largest."""
    values = run.series(tag, attempt=attempt).values  # type: ignore[arg-type]
    return len(values), values[0], values[-1], np.nanmax(values)


def test_mindformers_of_2022_with_four_starts() -> None:
    run = opened("ms_logs/mindformers_v0.1.2_gpt_stacking_train.log")
    count, first, last, largest = facts(run, "train_loss", "all")
    assert (count, first, last) == (287, 1.85208678e-01, 9.02149752e-02)
    assert largest == pytest.approx(10.3572, abs=5e-5)
    losses = run.series("train_loss", attempt="all")
    assert losses.values.min() == pytest.approx(0.0658889, abs=5e-8)
    assert (losses.steps[0], losses.steps[-1]) == (10, 1600)
    assert run.series("overflow", attempt="all").values.sum() == 2
    scale = run.series("loss_scale", attempt="all").values
    assert (scale[0], scale[-1], scale.max()) == (4.1943e06, 4.1943e06, 1.67772e07)
    assert facts(run, "step_time_s", "all")[:3] == (287, 2357.534 / 1000, 935.756 / 1000)
    # The log is a concatenation: steps go back three times.
    assert run.attempts == [1, 2, 3, 4]
    assert [len(run.series("train_loss", attempt=a)) for a in run.attempts] == [21, 53, 53, 160]
    assert len(run.series("train_loss")) == 160  # the last start began at the first step again


def test_mindformers_with_norms_that_lost_their_point() -> None:
    run = opened("ms_logs/mindformers_llama2_13b_grep_epoch.log")
    assert facts(run, "train_loss") == (5, 10.649, 8.867, 10.649)
    assert run.series("train_loss").steps.tolist() == [1, 2, 3, 4, 5]
    assert run.series("overflow").values.sum() == 0
    assert set(run.series("loss_scale").values) == {1.0}
    norms = run.series("grad_norm")
    assert norms.steps.tolist() == [3, 4, 5]
    assert norms.values.tolist() == [10.579812, 21.932272, 16.986555]
    assert "2 values left out, the first: 'global_norm: [1 31049]'" in told(run)
    assert facts(run, "step_time_s")[1:3] == (103.328, 1.758)
    assert run.series("train_loss").wall_times[0] == 1744040067.308  # 2025-04-07 15:34:27.308
    assert "UTC" in run.tags["time_zone"]


def test_mindformers_that_ends_in_an_exception() -> None:
    run = opened("ms_logs/mindformers_skip_data_abort.log")
    assert facts(run, "train_loss") == (1, 0.0, 0.0, 0.0)
    assert run.series("grad_norm").values.tolist() == [47.329006]
    assert run.series("step_time_s").values.tolist() == [7.637]
    errors = [note for note in run.notes() if note.kind == "error"]
    assert len(errors) == 1
    assert errors[0].data["text"].startswith("ValueError: Current global norm")


def test_mindformers_with_embedding_norms() -> None:
    run = opened("ms_logs/mindformers_embedding_local_norm.log")
    assert run.series("grad_norm").values.tolist() == [44.31202, 47.328575]
    assert run.series("embedding_local_norm").values.tolist() == [251.79117, 291.3603]
    assert run.series("step_time_s").values.tolist() == [157.149, 8.266]


def test_mindformers_short_form() -> None:
    run = opened("ms_logs/mindspore_qwen3_8b_lora_excerpt.log")
    assert facts(run, "train_loss") == (7, 15.994116, 14.734194, 16.604145)
    assert run.series("grad_norm").values.tolist() == [
        18.362312, 16.522688, 17.509201, 14.831752, 17.419353, 14.462115, 14.444327,
    ]  # fmt: skip
    assert facts(run, "step_time_s")[1:3] == (153.259, 0.577)


def test_loss_monitor_counts_on_over_epochs() -> None:
    run = opened("ms_logs/mindspore_vit_lossmonitor.log")
    assert facts(run, "train_loss")[:3] == (10, 1.903618335723877, 1.098097562789917)
    assert facts(run, "train_loss")[3] == 2.5462236404418945
    # 125 steps an epoch, as the time of an epoch and of a step say.
    assert run.series("train_loss").steps.tolist() == [125 * e for e in range(1, 11)]
    assert set(run.series("step in epoch").values) == {125.0}
    assert facts(run, "step_time_s")[1:3] == (0.79886, 0.762162)


def test_loss_monitor_with_evaluation_between() -> None:
    run = opened("ms_logs/mindearth_fuxi_swin.log")
    assert facts(run, "train_loss")[:3] == (20, 0.37644267, 0.11112012)
    assert facts(run, "step_time_s")[:3] == (20, 3.326567, 3.255357)
    assert run.series("train_loss").steps[[0, 9, 10, 19]].tolist() == [67, 670, 91 * 67, 6700]


def test_ranks_that_print_into_one_file() -> None:
    run = opened("ms_logs/fault_recover_first_run.log")
    assert run.attempts == [1]
    assert run.series("train_loss").steps.tolist() == [77] * 4
    assert run.series("train_loss").values.tolist() == [7.187697, 6.612632, 6.393444, 6.271424]


@pytest.mark.parametrize(
    ("name", "count", "first", "last", "steps"),
    [
        ("msrun_epoch0_step", 10, 2.3499548, 0.88950706, (0, 90)),
        ("pangu_alpha_split", 10, 10.616087, 8.795234, (10, 100)),
        ("transformer_encoder_decoder_8p", 5, 9.9034, 9.9022, (1, 5)),
    ],
)
def test_small_mindspore_logs(
    name: str, count: int, first: float, last: float, steps: tuple[int, int]
) -> None:
    run = opened(f"ms_logs/{name}.log")
    assert facts(run, "train_loss")[:3] == (count, first, last)
    assert (run.series("train_loss").steps[0], run.series("train_loss").steps[-1]) == steps


def test_mindyolo_with_nan_and_a_cut_line() -> None:
    run = opened("ms_logs/mindspore_mindyolo_nan.log")
    losses = run.series("train_loss")
    assert np.isnan(losses.values).tolist() == [True] * 4
    assert losses.steps.tolist() == [100, 200, 300, 400]
    assert run.series("learning_rate").values.tolist() == [
        0.09713740646839142, 0.09427481144666672, 0.09141221642494202,
    ]  # fmt: skip
    assert "cur_lr: 0.088" in told(run)
    assert sum(note.kind == "overflow" for note in run.notes()) == 4


@pytest.mark.parametrize(
    "name",
    [
        "err_EZ9999_aicore_add.log",
        "memstat_dryrun_nofrag.txt",
        "oom_EE9999_halMemAlloc_30GB.log",
        "oom_memory_statistic.log",
        "oom_ms_old_style_faq.txt",
        "oom_torch_npu_1987.txt",
        "plog_EL0004_ge_alloc_failure.log",
        "plog_runtime_EE9999.log",
    ],
)
def test_a_log_without_a_training_is_refused(name: str) -> None:
    with pytest.raises(FormatError, match="no line in it is a step of a training; it begins with"):
        opened(f"ms_logs/{name}")


def test_trainer_state_whose_every_evaluation_is_nan() -> None:
    run = opened("hf_trainer/trainer_state_wikipediallm_43800.json")
    assert (run.tags["global_step"], run.tags["epoch"], run.tags["max_steps"]) == (
        "43800", "8.0", "43800",
    )  # fmt: skip
    assert facts(run, "train_loss") == (87, 5.9383, 5.181, 5.9383)
    assert run.series("train_loss").steps[-1] == 43500
    norms = run.series("grad_norm")
    assert (len(norms), norms.values.max()) == (87, 30.936784744262695)
    assert norms.steps[norms.values.argmax()] == 17500
    assert np.isnan(run.series("eval_loss").values).tolist() == [True] * 7
    assert len(run.series("epoch")) == 94  # one an entry of the history
    assert run.tags["alias.train_loss"] == "loss"


def test_trainer_state_of_evaluations_only() -> None:
    run = opened("hf_trainer/trainer_state_wikipediallm_189_eval_only.json")
    assert "train_loss" not in run.specs()
    found = run.series("eval_loss")
    assert (found.steps.tolist(), found.values[-1]) == ([63, 126], 5.8813700675964355)


def test_trainer_state_of_roberta() -> None:
    run = opened("hf_trainer/trainer_state_roberta_lora_agnews_1200.json")
    assert facts(run, "train_loss") == (12, 1.2893, 0.2362, 1.2893)
    norms = run.series("grad_norm")
    assert (norms.values.max(), norms.steps[norms.values.argmax()]) == (6.602963447570801, 1200)
    found = run.series("eval_loss")
    assert (len(found), found.values[-1]) == (12, 0.289970725774765)
    assert (found.values.min(), found.steps[found.values.argmin()]) == (0.2895529866218567, 900)


def test_old_trainer_state_without_gradient_norm() -> None:
    run = opened("hf_trainer/trainer_state_whisper_large_v2_5000.json")
    assert "grad_norm" not in run.specs()
    assert facts(run, "train_loss") == (200, 0.3048, 0.0002, 0.3048)
    assert run.series("train_loss").steps[-1] == 5000
    found = run.series("eval_loss")
    assert (len(found), found.values[-1]) == (5, 0.4200145900249481)
    assert (found.values.min(), found.steps[found.values.argmin()]) == (0.320997953414917, 1000)
    # What the Trainer calls "train_loss" is the mean over the run: no step's loss.
    assert len(run.series("train_loss_mean")) == 1


def test_console_of_the_trainer() -> None:
    run = opened("hf_trainer/hf_stdout_gradnorm_nan.txt")
    assert run.series("train_loss").values.tolist() == [0.6104, 1.0662, 0.5875]
    assert np.isnan(run.series("grad_norm").values).all()
    assert run.series("epoch").values.tolist() == [0.31, 0.62, 0.94]
    assert "numbered" in told(run)


def test_megatron_whose_first_iterations_are_all_skipped() -> None:
    run = opened("megatron_logs/megatron_gpt2_n4_tp4_pp4_skipped.out")
    losses = run.series("train_loss")
    assert facts(run, "train_loss") == (19, 12.03115, 7.365868, 22.47505)
    assert losses.steps[losses.values.argmax()] == 30
    assert losses.steps.tolist() == list(range(20, 201, 10))
    assert run.series("learning_rate").steps.tolist() == list(range(10, 201, 10))
    norms = run.series("grad_norm")
    assert (norms.values.max(), norms.steps[norms.values.argmax()]) == (51.641, 40)
    scale = run.series("loss_scale").values
    assert (len(scale), scale[0], scale[-1]) == (20, 8388608.0, 16384.0)
    assert run.series("skipped_steps").values.sum() == 19
    assert run.series("nan_steps").values.sum() == 0
    assert facts(run, "step_time_s")[1:3] == (2152.2 / 1000, 1382.2 / 1000)
    assert run.series("eval_loss").steps.tolist() == [100, 200]
    assert run.series("eval_loss").values[0] == 8.017406
    # Sixteen ranks print their memory, several on one line.
    assert run.ranks == list(range(16))
    assert run.series("memory_allocated", rank=7).values.tolist() == [21633.0859375 * 2**20]


def test_megatron_where_a_value_means_not_known() -> None:
    run = opened("megatron_logs/megatron_ds3d_52B_ds_on.out")
    assert facts(run, "train_loss") == (49, 12.44238, 7.747273, 43.05696)
    losses = run.series("train_loss")
    assert losses.steps[losses.values.argmax()] == 4
    assert losses.values.min() == pytest.approx(7.73839, abs=5e-6)
    assert run.tags["alias.train_loss"] == "lm-loss"
    assert {"loss_scale", "grad_norm"}.isdisjoint(run.specs())
    assert "loss scale -1.0 and grad norm 0.000 mean not known" in told(run)
    assert facts(run, "step_time_s")[1:3] == (159.7789, 136.3288)


def test_megatron_chronicle_with_prose_between() -> None:
    run = opened("megatron_logs/megatron_104B_spike_gradnorm_3e6_no_loss_line.log")
    assert facts(run, "train_loss") == (7, 3.317482, 7.02458, 7.596509)
    losses = run.series("train_loss")
    assert (losses.steps[0], losses.steps[losses.values.argmax()]) == (8738, 8743)
    assert run.series("loss_scale").steps[-1] == 9027
    norms = run.series("grad_norm")
    assert (norms.values.max(), norms.steps[norms.values.argmax()]) == (3273877.676, 8741)
    scale = run.series("loss_scale").values
    assert (scale[0], scale[-1]) == (65536.0, 8192.0)
    assert facts(run, "step_time_s")[1:3] == (61.9476, 63.2746)


def test_megatron_with_overflows_between() -> None:
    run = opened("megatron_logs/megatron_104B_sudden_jump_17062.log")
    assert facts(run, "train_loss") == (9, 2.665295, 4.137348, 4.404639)
    losses = run.series("train_loss")
    assert losses.steps[losses.values.argmax()] == 17065
    norms = run.series("grad_norm")
    assert (norms.values.max(), norms.steps[norms.values.argmax()]) == (879946.622, 17066)
    scale = run.series("loss_scale").values
    assert (scale[0], scale[-1]) == (1048576.0, 32768.0)
    overflows = [note for note in run.notes() if note.kind == "overflow"]
    assert len(overflows) == 6
    assert overflows[0].wall_time == 1642597753.305  # 2022-01-19 13:09:13.305


def test_megatron_records_that_are_wrapped() -> None:
    run = opened("megatron_logs/megatron_bloom176B_wrapped_lines.log")
    assert facts(run, "train_loss") == (5, 2.117073, 2.127643, 2.127643)
    losses = run.series("train_loss")
    assert losses.steps.tolist() == list(range(42780, 42785))
    assert losses.values.min() == 2.110646
    assert run.series("learning_rate").values.tolist() == [4.475e-05] * 5
    assert run.series("nan_steps").values.tolist() == [0.0] * 5
    assert facts(run, "grad_norm")[3] == 0.15
    assert facts(run, "step_time_s")[1:3] == (105.16, 111.14)
    assert "loss_scale" not in run.specs()


def test_golden_values_of_megatron() -> None:
    run = opened("megatron_logs/megatron_golden_bert_resume_h100.json")
    assert facts(run, "train_loss")[:3] == (100, 10.60965, 8.98151)
    assert facts(run, "grad_zeros")[:3] == (100, 2274.0, 4781.0)
    assert facts(run, "memory_allocated")[:3] == (100, 1795597824.0, 1795597824.0)
    assert facts(run, "memory_peak")[:3] == (100, 2375866880.0, 3125675520.0)
    assert facts(run, "step_time_s")[:3] == (99, 5.35543, 0.93775)
    assert (run.series("step_time_s").steps[0], run.series("step_time_s").steps[-1]) == (2, 100)
    assert run.attempts == [1]


def test_pairs_of_torchtitan() -> None:
    run = opened("megatron_logs/torchtitan_llama3_losses.txt")
    assert facts(run, "train_loss")[:3] == (100, 8.049097061157227, 2.746471643447876)
    assert run.series("train_loss").steps.tolist() == list(range(1, 101))


@pytest.mark.parametrize(
    ("name", "best", "worst", "last", "loss"),
    [
        ("spam_llama60m_diverged", 5.0212, 7.0688, 6.885131359100342, 1.71875),
        ("spam_llama60m_healthy", 3.3868, 4.2537, 3.386845588684082, 0.83984375),
    ],
)
def test_logs_of_spam(name: str, best: float, worst: float, last: float, loss: float) -> None:
    run = opened(f"other_logs/{name}.log")
    found = run.series("eval_loss")
    assert found.steps.tolist() == list(range(1000, 20001, 1000))
    assert found.values[-1] == last
    assert found.values.min() == pytest.approx(best, abs=5e-5)
    assert found.values.max() == pytest.approx(worst, abs=5e-5)
    printed = run.series("loss at")
    assert (len(printed), printed.steps[-1], printed.values[-1]) == (201, 80004, loss)
    ours = run.series("train_loss")  # of an update: four micro steps
    assert (len(ours), ours.steps[-1], ours.values[-1]) == (201, 20001, 4 * loss)
    assert run.tags["final_eval_loss"] == str(last)


def test_log_that_ends_out_of_memory() -> None:
    run = opened("other_logs/spam_llama_cuda_oom.log")
    errors = [n.data["text"] for n in run.notes() if "OutOfMemoryError" in n.data.get("text", "")]
    assert len(errors) == 2
    assert "Tried to allocate 1.95 GiB" in errors[0]
    assert len(run.series("train_loss")) == 1


def test_summary_of_wandb() -> None:
    run = opened("other_logs/spam_llama60m_diverged_wandb-summary.json")
    assert run.series("train_loss").values.tolist() == [6.875]
    assert run.series("train_loss").steps.tolist() == [80005]
    assert run.series("final_eval_loss").values.tolist() == [6.885131359100342]
    assert run.series("update_step").values.tolist() == [20001.0]
    assert run.series("tokens_seen").values.tolist() == [2000224936.0]


def test_dllogger_whose_last_line_is_cut() -> None:
    run = opened("other_logs/nvidia_dll_bert_pretrain.log")
    assert facts(run, "train_loss") == (6, 3.146484375, 2.072265625, 3.146484375)
    assert run.series("train_loss").values.min() == 1.73828125
    assert facts(run, "learning_rate")[:3] == (5, 0.005360045911827694, 0.005092344186076086)
    assert "learning_rate : 0." in told(run)
    assert run.series("train_loss").wall_times[0] == 1590751905.76347


def test_pointer_of_git_lfs_is_named() -> None:
    folder = REAL / "tfevents" / "whisper_lfs_pointer"
    with pytest.raises(FormatError, match=r"Git LFS pointer.*37748 bytes.*git lfs pull"):
        open_run(next(folder.iterdir()))


def test_folder_of_several_runs_lists_them() -> None:
    with pytest.raises(UsageError, match=r"holds 5 things that could be the run: .*hf_stdout"):
        open_run(REAL / "hf_trainer")


def test_what_it_was_recognised_by() -> None:
    found = identify(REAL / "megatron_logs" / "megatron_gpt2_n4_tp4_pp4_skipped.out")
    assert (found.kind, found.why) == ("megatron-log", "by the step that line 1509 prints")


def judged(name: str) -> Health:
    return score(opened(name), load_rules(None))


def test_rules_see_an_evaluation_that_is_nan() -> None:
    part = judged("hf_trainer/trainer_state_wikipediallm_43800.json").parts["numerics"]
    assert (part.state, part.reasons[0].values["rule"]) == ("error", "nonfinite-eval")


def test_rules_see_nan_of_the_first_print() -> None:
    assert judged("ms_logs/mindspore_mindyolo_nan.log").parts["numerics"].state == "critical"


@pytest.mark.parametrize("run", ["run0", "run2"])
def test_a_plateau_at_the_level_of_chance_is_a_concern(run: str) -> None:
    concern = judged(f"tfevents/roberta_lora_agnews_{run}").parts["loss"].concern
    assert concern is not None
    assert concern.key == "loss_not_fallen"


@pytest.mark.parametrize(
    "name",
    [
        "tfevents/roberta_lora_agnews_run4",
        "hf_trainer/trainer_state_roberta_lora_agnews_1200.json",
        "other_logs/spam_llama60m_healthy.log",
    ],
)
def test_a_training_that_learns_is_none(name: str) -> None:
    health = judged(name)
    assert health.parts["loss"].concern is None
    assert health.score == health.at_best


def test_a_divergence_is_one() -> None:
    part = judged("other_logs/spam_llama60m_diverged.log").parts["loss"]
    assert part.state == "error"
    assert part.reasons[0].values["rule"] == "loss-divergence"


def test_rules_see_a_gradient_of_millions() -> None:
    health = judged("megatron_logs/megatron_104B_spike_gradnorm_3e6_no_loss_line.log")
    assert health.parts["gradient"].state == "error"
