"""Training models of Relax: losses, optimizers, and a trainer that runs them.

    mod = SetupTrainer(loss.MSELoss(), optimizer.SGD(0.1), [prediction, target])(mod)
    trainer = Trainer(mod, relax.VirtualMachine(tvm.compile(mod), tvm.cpu()), tvm.cpu())
    trainer.xaiver_uniform_init_params()
    loss = trainer.update(x, y)

Gradients are made by `relax.transform.Gradient`.
"""

from mlcweb.relax.training import loss, optimizer, utils
from mlcweb.relax.training.setup_trainer import SetupTrainer
from mlcweb.relax.training.trainer import Trainer
from mlcweb.relax.training.utils import AppendLoss
