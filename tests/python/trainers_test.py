"""Trainers of other libraries end with the bits of the loop around member.step, over the same batches."""
import unittest

from support import JobCase, free_port, have

needs_transformers = unittest.skipUnless(
    have("accelerate, transformers"), "transformers and accelerate are not installed (pip install transformers[torch])"
)
needs_lightning = unittest.skipUnless(have("lightning"), "lightning is not installed (pip install lightning)")

LOOPS = """
    import glob, json, logging, os, sys, warnings, torch, hearsay
    warnings.simplefilter("ignore"); logging.disable(logging.WARNING)
    from torch.utils.data import DataLoader, Dataset
    class Rows(Dataset):
        def __len__(self): return 40
        def __getitem__(self, k):
            draw = torch.Generator().manual_seed(k)
            return {"x": torch.randn(6, generator=draw), "labels": torch.randn(2, generator=draw)}
    class Net(torch.nn.Module):
        def __init__(self):
            super().__init__()
            torch.manual_seed(1)
            self.body = torch.nn.Sequential(torch.nn.Linear(6, 5), torch.nn.Tanh(), torch.nn.Linear(5, 2))
        def forward(self, x, labels):
            return {"loss": (self.body(x) - labels).square().mean()}
    PLANS = {
        "dpsgd": {"exchange": {"name": "dpsgd"}},
        "eventgrad": {"exchange": {"name": "eventgrad", "mixing": {"name": "arrival"}},
                      "trigger": {"name": "adaptive", "warmup_iterations": 2}},
        "allreduce": {"exchange": {"name": "allreduce", "overlap": False}},
        "diloco": {"exchange": {"name": "diloco", "local_steps": 3}},
    }
    def plan_of(name): return {**PLANS[name], "report": {"directory": "run", "overwrite": True}}
    def adam(net): return torch.optim.AdamW(net.parameters(), lr=0.01)
    def with_steps(name, passes, clip, epochs, shuffle):
        net = Net(); optimizer = adam(net)
        member = hearsay.join(plan_of(name), net)
        batches = member.share(DataLoader(Rows(), batch_size=2, shuffle=shuffle))
        for epoch in range(epochs):
            some = list(batches)
            for k in range(0, len(some), passes):
                with member.step(optimizer, backward_passes=passes):
                    for batch in some[k : k + passes]: (net(**batch)["loss"] / passes).backward()
                    torch.nn.utils.clip_grad_norm_(net.parameters(), clip)
        return ended(member)
    def ended(member):
        summary = member.summary()  # all that was sent is counted
        said = [member.replica_hash, member.steps, member.counts()["messages"]]
        if member.exchange == "allreduce": assert len(set(summary["replica_hash"])) == 1
        member.leave()
        return said
    def same(what, one, other): assert one == other, (what, one, other)
"""


class TransformersTest(JobCase):
    @needs_transformers
    def test_the_same_bits_as_with_steps(self):
        self.good_job(
            LOOPS + """
    import transformers, hearsay.transformers
    for name in PLANS:
        for passes in (1, 2):
            expected = with_steps(name, passes, 0.5, 2, True)
            net = Net()
            args = transformers.TrainingArguments(
                output_dir="out", num_train_epochs=2, per_device_train_batch_size=2, max_grad_norm=0.5,
                gradient_accumulation_steps=passes, lr_scheduler_type="constant", learning_rate=0.01, report_to=[],
                save_strategy="epoch", logging_steps=2, remove_unused_columns=False, disable_tqdm=True)
            optimizer = adam(net)
            trainer = transformers.Trainer(net, args, train_dataset=Rows(), optimizers=(optimizer, None))
            member = hearsay.transformers.join(plan_of(name), trainer)
            trainer.train()
            assert len(trainer.state.log_history) > 1
            assert trainer.is_world_process_zero() == (member.rank == 0)
            with member.averaged(): trainer.save_model("saved" + str(member.rank))
            same((name, passes), expected, ended(member))
    assert os.path.exists("saved0") and not os.path.exists("saved1")
    assert len(glob.glob("out/checkpoint-*")) > 1
            """
        )

    @needs_transformers
    def test_a_job_of_accelerates_own_is_refused(self):
        job = self.job(
            LOOPS + """
    import transformers, hearsay.transformers
    args = transformers.TrainingArguments(output_dir="out", use_cpu=True, report_to=[])
    hearsay.transformers.join(plan_of("dpsgd"), transformers.Trainer(Net(), args, train_dataset=Rows()))
            """,
            environment={"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(free_port())},
        )
        self.assertNotEqual(job.code, 0, job)  # torch.distributed has an excepthook of its own
        self.assertIn("the Trainer has 2 processes", job.err)


class LightningTest(JobCase):
    MODULE = LOOPS + """
    import lightning, hearsay.lightning
    class Module(lightning.LightningModule):
        def __init__(self):
            super().__init__()
            self.net, self.stops_after = Net(), None
        def training_step(self, batch, index): return self.net(**batch)["loss"]
        def validation_step(self, batch, index): self.log("loss", self.net(**batch)["loss"])
        def configure_optimizers(self): return adam(self.net)
    def trainer_of(name, **more):
        return lightning.Trainer(strategy=hearsay.lightning.Gossip(plan_of(name)), accelerator="cpu", max_epochs=2,
                                 enable_progress_bar=False, enable_model_summary=False, default_root_dir="out", **more)
    """

    @needs_lightning
    def test_the_same_bits_as_with_steps(self):
        self.good_job(
            self.MODULE + """
    for name in PLANS:
        for passes in (1, 2):
            expected = with_steps(name, passes, 0.5, 2, False)
            trainer = trainer_of(name, accumulate_grad_batches=passes, gradient_clip_val=0.5, log_every_n_steps=2)
            loader = DataLoader(Rows(), batch_size=2)
            trainer.fit(Module(), loader, loader)
            member = trainer.strategy.member
            assert trainer.is_global_zero == (member.rank == 0)
            assert trainer.num_training_batches == 10 and trainer.num_val_batches == [20]
            same((name, passes), expected, ended(member))
    saved = glob.glob("out/**/*.ckpt", recursive=True)
    assert member.rank != 0 or len(saved) >= 8, saved
            """
        )

    @needs_lightning
    def test_all_ranks_stop_when_rank_0_does(self):
        job = self.good_job(
            self.MODULE + """
    from lightning.pytorch.callbacks import EarlyStopping
    class Stops(EarlyStopping):
        def _evaluate_stopping_criteria(self, current): return trainer.current_epoch == 1 - member().rank, "enough"
    trainer = trainer_of("dpsgd", callbacks=[Stops("loss")])
    member = lambda: trainer.strategy.member
    trainer.fit_loop.max_epochs = 5
    loader = DataLoader(Rows(), batch_size=2)
    trainer.fit(Module(), loader, loader)
    print(json.dumps({"steps": member().steps}))
            """
        )
        self.assertEqual([said["steps"] for said in job.said], [20, 20])


if __name__ == "__main__":
    unittest.main()
