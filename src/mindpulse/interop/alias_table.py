"""The table of names: what other tools call a quantity, and what we call it."""

from __future__ import annotations

from dataclasses import dataclass

HUGGING_FACE = "Hugging Face"
MEGATRON = "Megatron"
MINDFORMERS = "MindFormers"
MSPROBE = "msprobe"
LIGHTNING = "Lightning"
KERAS = "Keras"
TORCHTITAN = "torchtitan"
DEEPSPEED = "DeepSpeed"
DLLOGGER = "DLLogger"
GALORE = "GaLore"


@dataclass(frozen=True, slots=True)
class Alias:
    """One line of the table.

    Attributes:
        tool: whose name it is.
        theirs: the name that the tool writes.
        ours: the tag that the series gets.
        unit: unit of our values.
        divide: our value is theirs divided by this.
    """

    tool: str
    theirs: str
    ours: str
    unit: str = ""
    divide: float = 1.0


_Line = tuple[str, str] | tuple[str, str, str] | tuple[str, str, str, float]
_MIB = 1 / 2**20
_GIB = 1 / 2**30


def _of(tool: str, *lines: _Line) -> tuple[Alias, ...]:
    return tuple(Alias(tool, *line) for line in lines)


ALIASES: tuple[Alias, ...] = (
    *_of(
        HUGGING_FACE,
        ("loss", "train_loss"),
        ("train/loss", "train_loss"),
        # The mean over the whole training, written once at its end: not a loss of a step.
        ("train_loss", "train_loss_mean"),
        ("train/train_loss", "train_loss_mean"),
        ("grad_norm", "grad_norm"),
        ("train/grad_norm", "grad_norm"),
        ("learning_rate", "learning_rate"),
        ("train/learning_rate", "learning_rate"),
        ("epoch", "epoch"),
        ("train/epoch", "epoch"),
        ("eval_loss", "eval_loss"),
        ("eval/loss", "eval_loss"),
        ("eval_accuracy", "eval_accuracy"),
        ("eval/accuracy", "eval_accuracy"),
        ("eval_runtime", "eval_runtime_s", "s"),
        ("eval/runtime", "eval_runtime_s", "s"),
        ("train_runtime", "train_runtime_s", "s"),
        ("train/train_runtime", "train_runtime_s", "s"),
    ),
    *_of(
        MEGATRON,
        ("lm loss", "train_loss"),
        ("lm-loss", "train_loss"),
        ("lm-loss-training/lm loss", "train_loss"),
        ("loss", "train_loss"),
        ("grad norm", "grad_norm"),
        ("grad-norm", "grad_norm"),
        ("learning rate", "learning_rate"),
        ("learning-rate", "learning_rate"),
        ("loss scale", "loss_scale"),
        ("loss-scale", "loss_scale"),
        ("elapsed time per iteration (ms)", "step_time_s", "s", 1000.0),
        ("elapsed time per iteration (s)", "step_time_s", "s"),
        ("iteration-time", "step_time_s", "s"),
        ("params norm", "param_norm"),
        ("params-norm", "param_norm"),
        ("num zeros", "grad_zeros"),
        ("num-zeros", "grad_zeros"),
        ("number of skipped iterations", "skipped_steps"),
        ("number of nan iterations", "nan_steps"),
        ("global batch size", "batch_size"),
        ("batch-size", "batch_size"),
        ("consumed samples", "consumed_samples"),
        ("consumed tokens", "consumed_tokens"),
        ("samples per second", "samples_per_s", "1/s"),
        ("TFLOPs", "tflops_per_device", "TFLOP/s"),
        ("throughput per GPU (TFLOP/s/GPU)", "tflops_per_device", "TFLOP/s"),
        ("validation lm loss value", "eval_loss"),
        ("lm loss validation", "eval_loss"),
        ("validation lm loss PPL", "eval_perplexity"),
        ("memory (MB) allocated", "memory_allocated", "bytes", _MIB),
        ("memory (MB) max allocated", "memory_peak", "bytes", _MIB),
        ("memory (MB) reserved", "memory_reserved", "bytes", _MIB),
        ("memory (MB) max reserved", "memory_reserved_peak_bytes", "bytes", _MIB),
        ("mem-allocated-bytes", "memory_allocated", "bytes"),
        ("mem-max-allocated-bytes", "memory_peak", "bytes"),
    ),
    *_of(
        MINDFORMERS,
        ("loss", "train_loss"),
        ("Loss", "train_loss"),
        ("lm-loss", "train_loss"),
        ("global_norm", "grad_norm"),
        ("grad-norm", "grad_norm"),
        ("lr", "learning_rate"),
        ("cur_lr", "learning_rate"),
        ("learning-rate", "learning_rate"),
        ("loss_scale", "loss_scale"),
        ("loss-scale", "loss_scale"),
        ("loss scale", "loss_scale"),
        ("overflow cond", "overflow"),
        ("Overflow cond", "overflow"),
        ("samples/s/p", "samples_per_s_per_device", "1/s"),
        ("per_step_time", "step_time_s", "s", 1000.0),
        ("time", "step_time_s", "s", 1000.0),
        ("cost time", "step_time_s", "s"),
        ("per step time", "step_time_s", "s", 1000.0),
        ("step time", "step_time_s", "s", 1000.0),
        ("iteration-time", "step_time_s", "s"),
        ("train_throughput_per_npu", "tflops_per_device", "TFLOP/s"),
        ("model-flops-throughput-per-npu", "tflops_per_device", "TFLOP/s"),
    ),
    *_of(
        MSPROBE,
        ("grad_reduced_norm", "grad_norm_param"),
        ("grad_norm_param", "grad_norm_param"),
        ("param_origin_norm", "param_norm_param"),
        ("weight_grad_reduced_norm", "grad_norm_param"),
        ("attention_hook_entropy", "msprobe_attention_entropy", "nats"),
    ),
    *_of(
        LIGHTNING,
        ("train_loss_step", "train_loss"),
        ("train_loss", "train_loss"),
        ("train_loss_epoch", "train_loss_epoch"),
        ("val_loss", "eval_loss"),
        ("val_acc", "eval_accuracy"),
        ("lr", "learning_rate"),
        ("grad_2.0_norm_total", "grad_norm"),
    ),
    *_of(
        KERAS,
        ("batch_loss", "train_loss"),
        ("loss", "train_loss"),
        ("epoch_loss", "epoch_loss"),
        ("val_loss", "eval_loss"),
        ("epoch_val_loss", "eval_loss"),
        ("accuracy", "train_accuracy"),
        ("acc", "train_accuracy"),
        ("batch_acc", "train_accuracy"),
        ("val_accuracy", "eval_accuracy"),
        ("val_acc", "eval_accuracy"),
        ("epoch_val_acc", "eval_accuracy"),
        ("lr", "learning_rate"),
        ("learning_rate", "learning_rate"),
    ),
    *_of(
        TORCHTITAN,
        ("loss", "train_loss"),
        ("loss_metrics/global_avg_loss", "train_loss"),
        ("grad_norm", "grad_norm"),
        ("lr", "learning_rate"),
        ("time_metrics/end_to_end(s)", "step_time_s", "s"),
        ("memory/max_reserved(GiB)", "memory_reserved_peak_bytes", "bytes", _GIB),
        ("validation_metrics/global_avg_loss", "eval_loss"),
    ),
    *_of(
        DEEPSPEED,
        ("loss", "train_loss"),
        ("Train/Samples/train_loss", "train_loss"),
        ("lr", "learning_rate"),
        ("Train/Samples/lr", "learning_rate"),
        ("Train/Samples/loss_scale", "loss_scale"),
        ("iter time (s)", "step_time_s", "s"),
        ("samples/sec", "samples_per_s", "1/s"),
        ("skipped", "skipped_steps_total"),
    ),
    *_of(
        DLLOGGER,
        ("step_loss", "train_loss"),
        ("learning_rate", "learning_rate"),
    ),
    *_of(
        GALORE,
        ("loss", "train_loss"),
        ("Eval loss", "eval_loss"),
        ("final_eval_loss", "final_eval_loss"),
        ("lr", "learning_rate"),
    ),
)
