# SPDX-License-Identifier: Apache-2.0
"""at.Tensors inside of torch.func transforms: torch's values, or a refusal: no gradient is lost."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from torch.func import grad, hessian, jacfwd, jacrev, jvp, linearize, vjp, vmap

import bridge
from bridge import at

pytestmark = pytest.mark.filterwarnings("ignore:`torch.jit.script` is", "ignore:.*:UserWarning")

POINT = [1.0, 2.0, 3.0]
TANGENT = [1.0, 0.0, 2.0]

# A function of `a` and of a constant `c` of the same sizes.
SHARED = {
    "operator": lambda a, c: (c * a * a).sum(),
    "torch's function": lambda a, c: torch.mul(c, a).pow(2).sum(),
    "at's function": lambda a, c: at.mul(c, a).sin().sum(),
    "only the argument": lambda a, c: at.mul(a, a).sum(),
    "method": lambda a, c: c.dot(a) ** 2,
    "list of tensors": lambda a, c: at.stack([c, a * a]).sum(),
    "condition": lambda a, c: at.where(a > 1.5, c, a * a).sum(),
    "to_torch": lambda a, c: bridge.to_torch(a).mul(bridge.to_torch(c)).pow(2).sum(),
    "convert": lambda a, c: bridge.convert(a, "torch").mul(bridge.to_torch(c)).cos().sum(),
}
TRANSFORMS = {
    "grad": lambda f, point, tangent: grad(f)(point),
    "jacrev": lambda f, point, tangent: jacrev(f)(point),
    "jacfwd": lambda f, point, tangent: jacfwd(f)(point),
    "hessian": lambda f, point, tangent: hessian(f)(point),
    "jvp": lambda f, point, tangent: jvp(f, (point,), (tangent,)),
    "vjp": lambda f, point, tangent: vjp(f, point)[1](torch.tensor(2.0)),
    "linearize": lambda f, point, tangent: linearize(f, point)[1](tangent),
    "vmap": lambda f, point, tangent: vmap(f)(torch.stack([point, tangent])),
}


@pytest.mark.parametrize("transform", TRANSFORMS)
@pytest.mark.parametrize("function", SHARED)
def test_a_captured_tensor_is_a_constant_of_the_function(function, transform) -> None:
    point, tangent = torch.tensor(POINT), torch.tensor(TANGENT)
    constant = torch.tensor([0.5, -1.0, 2.0])

    def run(c):
        found = TRANSFORMS[transform](lambda a: SHARED[function](a, c), point, tangent)
        return found if isinstance(found, tuple) else (found,)

    for found, expected in zip(run(bridge.from_dlpack(constant)), run(constant), strict=True):
        np.testing.assert_allclose(found.tolist(), expected.tolist(), rtol=1e-6)


COPIES = {
    "from_dlpack": bridge.from_dlpack,
    "a copy": lambda a: bridge.from_dlpack(a, copy=True),
    "asarray": bridge.asarray,
    "to_numpy": bridge.to_numpy,
    "convert": lambda a: bridge.convert(a, "numpy"),
    "copy_": lambda a: at.zeros(3).copy_(a),
    "item assignment": lambda a: at.zeros(3).__setitem__(slice(None), a),
    "wrap": lambda a: bridge.wrap(np.sin, "numpy")(a),
}


@pytest.mark.parametrize("transform", ["grad", "jacfwd", "hessian", "jvp", "vmap"])
@pytest.mark.parametrize("door", COPIES)
def test_a_door_that_would_lose_a_gradient_refuses(door, transform) -> None:
    def function(a):
        COPIES[door](a)
        return (a * a).sum()

    with pytest.raises(BufferError):
        TRANSFORMS[transform](function, torch.tensor(POINT), torch.tensor(TANGENT))


def test_a_primal_is_an_at_tensor_where_its_tangent_is_one() -> None:
    point, tangent = at.tensor(POINT), at.tensor(TANGENT)
    value, derivative = jvp(lambda a: (a * a).sum(), (point,), (tangent,))
    assert (value.item(), derivative.item()) == (14, 14)
    assert grad(lambda a: (a * a).sum())(point).tolist() == [2, 4, 6]
    with pytest.raises(RuntimeError, match="same python structure"):
        jvp(lambda a: (a * a).sum(), (point,), (torch.tensor(TANGENT),))
