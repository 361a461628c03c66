# SPDX-License-Identifier: Apache-2.0
"""Automatic gradients of nets.

`patterns` makes the gradient operators of one operator, as it declares them, by a `maker`.
`backward_pass` goes backwards through a net; `sums` adds the contributions of several operators to
one gradient.
"""
