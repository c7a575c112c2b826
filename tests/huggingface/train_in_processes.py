"""Train a tiny LogLinearForCausalLM by a Trainer, in each process of `accelerate launch`: PRIOR OUT."""

import os
import sys

os.environ["HF_HUB_OFFLINE"] = "1"

import torch
from transformers import LlamaConfig, Trainer, TrainingArguments

from fairseq_llrnn import LogLinearForCausalLM, Prior


def main() -> None:
    prior, out = Prior.load(sys.argv[1]), sys.argv[2]
    torch.manual_seed(1)
    sizes = {"hidden_size": 8, "num_hidden_layers": 2, "num_attention_heads": 2, "intermediate_size": 8}
    model = LogLinearForCausalLM.from_config(LlamaConfig(**sizes), prior)
    rows = [{"input_ids": row, "labels": row} for row in torch.randint(4, 8, (16, 5)).tolist()]
    for row in rows:
        row["input_ids"][0] = prior.index("</s>")
    options = TrainingArguments(
        output_dir=out, max_steps=3, per_device_train_batch_size=2, learning_rate=0.05, save_strategy="no",
        use_cpu=True, report_to="none", seed=1,
        disable_tqdm=True, dataloader_pin_memory=False, lr_scheduler_type="constant",
    )  # fmt: skip
    trainer = Trainer(model, options, train_dataset=rows)
    trainer.train()
    trainer.save_model(out)
    if trainer.is_world_process_zero():
        print("losses", trainer.state.log_history[-1]["train_loss"], trainer.accelerator.distributed_type)


if __name__ == "__main__":
    main()
