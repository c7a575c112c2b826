"""Train a tiny LogLinearForCausalLM in each of several processes: PRIOR OUT, by a Trainer, or PRIOR OUT sharded."""

import os
import sys

os.environ["HF_HUB_OFFLINE"] = "1"

import torch
from torch.distributed.fsdp import fully_shard
from transformers import LlamaConfig, Trainer, TrainingArguments

from fairseq_llrnn import LogLinearForCausalLM, Prior


def sharded(model: LogLinearForCausalLM, tokens: torch.Tensor) -> None:
    """Print the losses of three steps of FSDP, and of one process, on the same batches."""
    torch.distributed.init_process_group("gloo")
    rank, losses = torch.distributed.get_rank(), {}
    alone = LogLinearForCausalLM(model.config, model.head.prior)
    alone.load_state_dict(model.state_dict())
    for layer in model.model.layers:
        fully_shard(layer)
    fully_shard(model)
    for name, one, mine in (("sharded", model, tokens[rank::2]), ("alone", alone, tokens)):
        step = torch.optim.SGD(one.parameters(), lr=0.1)
        for _ in range(3):
            loss = one(input_ids=mine, labels=mine).loss
            loss.backward()
            step.step()
            step.zero_grad()
            total = loss.detach().clone()
            torch.distributed.all_reduce(total)
            losses.setdefault(name, []).append(total.item() / 2)
    if rank == 0:
        assert torch.allclose(*(torch.tensor(losses[name]) for name in ("sharded", "alone")), atol=1e-5), losses
        print("FSDP", losses)
    torch.distributed.destroy_process_group()


def main() -> None:
    prior, out = Prior.load(sys.argv[1]), sys.argv[2]
    torch.manual_seed(1)
    sizes = {"hidden_size": 8, "num_hidden_layers": 2, "num_attention_heads": 2, "intermediate_size": 8}
    model = LogLinearForCausalLM.from_config(LlamaConfig(**sizes), prior)
    rows = [{"input_ids": row, "labels": row} for row in torch.randint(4, 8, (16, 5)).tolist()]
    for row in rows:
        row["input_ids"][0] = prior.index("</s>")
    if sys.argv[3:]:
        sharded(model, torch.tensor([row["input_ids"] for row in rows]))
        return
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
