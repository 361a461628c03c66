# SPDX-License-Identifier: Apache-2.0
"""A small model, dense or with a table of rows, that an optimizer trains; for Python 3.8, too."""

import numpy as np

STEPS = 5
RATE = {"base_learning_rate": 0.1}
FTRL = {"engine": "", "alpha": 1.0, "beta": 0.5, "lambda1": 0.001, "lambda2": 0.25}
ASKED = [
    ["build_sgd", RATE],
    ["build_sgd", dict(RATE, policy="step", stepsize=2, gamma=0.5, momentum=0.9)],
    ["build_sgd", dict(RATE, momentum=0.9, nesterov=False, max_gradient_norm=0.25)],
    ["build_sgd", dict(RATE, max_gradient_norm=0.125)],
    ["build_adam", RATE],
    ["build_adam", dict(RATE, beta1=0.5, beta2=0.75, epsilon=0.001)],
    ["build_adagrad", RATE],
    ["build_adagrad", dict(RATE, decay=0.875)],
    ["build_rms_prop", dict(RATE, momentum=0.5)],
    ["build_adadelta", RATE],
    ["build_wngrad", dict(RATE, moment_init=10.0)],
    ["build_storm", RATE],
    ["add_weight_decay", {"weight_decay": 0.125}],
    ["build_sgd", dict(RATE, lars=0.5)],
    ["build_sgd", dict(RATE, lars=0.5, momentum=0.5, max_gradient_norm=0.25)],
    ["build_sgd", dict(RATE, allow_lr_injection=True)],
    ["build_sgd", dict(RATE, sparse_dedup_aggregator="mean")],
    ["build_sgd", dict(RATE, sparse_dedup_aggregator="sum", momentum=0.9)],
    ["build_multi_precision_sgd", dict(RATE, momentum=0.5)],
    ["build_ftrl", FTRL],
    ["build_gftrl", FTRL],
    ["build_adagrad", dict(RATE, lars=0.5, allow_lr_injection=True, max_gradient_norm=0.5)],
    ["build_adagrad", dict(RATE, weight_decay=0.25)],
    ["build_adagrad", dict(RATE, rowWise=True)],
    ["build_adagrad", dict(RATE, rowWise=True, counter_halflife=5, weight_decay=0.25)],
    ["build_adagrad", dict(RATE, output_effective_lr=True, counter_halflife=2)],
    ["build_adagrad", dict(RATE, output_effective_lr_and_update=True)],
    ["build_adagrad", dict(RATE, parameters=["y_w"], sparse_dedup_aggregator="mean")],
    ["build_adam", dict(RATE, rowWise=True)],
    ["build_adam", dict(RATE, enableRAdam=True)],
    ["build_adam", dict(RATE, use_lr_adaption=True, lr_alpha=0.5)],
    ["build_adam", dict(RATE, use_lr_adaption=True, normalized_lr_adaption=False)],
    ["build_wngrad", dict(RATE, lars=0.25, output_effective_lr_and_update=True)],
    ["build_storm", dict(RATE, lars=0.25, sparse_dedup_aggregator="sum")],
    ["build_adadelta", dict(RATE, sparse_dedup_aggregator="mean")],
    ["build_yellowfin", {"base_learning_rate": 0.25, "mu": 0.5, "curv_win_width": 3}],
]
QUESTIONS = [[*one, is_sparse] for one in ASKED for is_sparse in (False, True)]


def answer(caffe2, function, arguments, is_sparse):
    """Train with `caffe2`, an object with the modules of either; give what is to be compared."""
    caffe2.workspace.ResetWorkspace()
    model = caffe2.model_helper.ModelHelper(name="trained")
    if is_sparse:
        table = model.param_init_net.XavierFill([], "table", shape=[5, 4])
        model.AddParameter(table)
        model.net.Gather([table, "ids"], "x")
    caffe2.brew.fc(model, "x", "y", 4, 2)
    if is_sparse and arguments.get("rowWise"):
        model.params[1:] = []  # only the table, as there is no row-wise operator of dense gradients
    model.net.SoftmaxWithLoss(["y", "label"], ["softmax", "loss"])
    model.AddGradientOperators(["loss"])
    before = len(model.param_init_net.Proto().op), len(model.net.Proto().op)
    made = getattr(caffe2.optimizer, function)(model, **arguments)
    if made is None:
        made = caffe2.optimizer.build_sgd(model, **RATE)
    operators = [
        [shown(op) for op in list(model.param_init_net.Proto().op)[before[0] :]],
        [shown(op) for op in list(model.net.Proto().op)[before[1] :]],
    ]
    model.param_init_net.set_rand_seed(3)
    caffe2.workspace.FeedBlob("label", np.array([0, 1, 1], np.int32))
    caffe2.workspace.FeedBlob("ids", np.array([4, 0, 4], np.int32))
    caffe2.workspace.FeedBlob("x", np.arange(12, dtype=np.float32).reshape(3, 4) / 8)
    caffe2.workspace.RunNetOnce(model.param_init_net)
    caffe2.workspace.CreateNet(model.net)
    for _ in range(STEPS):
        caffe2.workspace.RunNet(model.net)
    names = ["table"] * is_sparse + ["y_w", "y_b"]
    names += ["optimizer_iteration"] * caffe2.workspace.HasBlob("optimizer_iteration")
    return {
        "operators": operators,
        "auxiliary": [list(map(str, some)) for some in made.get_auxiliary_parameters()],
        "trained": {name: caffe2.workspace.FetchBlob(name).ravel().tolist() for name in names},
    }


def shown(op):
    """Show an operator; the numbers of nets and optimizers in names depend on what was before."""
    return [
        op.type,
        [unnumbered(name) for name in op.input],
        [unnumbered(name) for name in op.output],
        [argument.SerializeToString().hex() for argument in op.arg],
        [op.HasField("engine"), op.HasField("device_option")],
        op.device_option.SerializeToString().hex(),
    ]


def unnumbered(name):
    """Leave the number of a net or an optimizer out of a name."""
    for word in ("Optimizer_", "trained_"):
        head, found, tail = name.partition(word)
        if found:
            name = head + found + tail.lstrip("0123456789")
    return name.replace("trained_/", "trained/")
