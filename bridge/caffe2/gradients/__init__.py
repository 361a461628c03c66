# SPDX-License-Identifier: Apache-2.0
"""Automatic gradients of nets.

`table`, read by `patterns`, and `makers` define the gradient operators of each operator type.
`registry` looks them up, together with those that users register. `backward_pass` goes backwards
through a net; `sums` adds the contributions of several operators to one gradient.
"""
