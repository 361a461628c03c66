# SPDX-License-Identifier: Apache-2.0
"""Automatic gradients of nets.

`table`, read by `patterns`, and `makers` say which operators the gradient of an operator is;
`registry` finds them, with those that users register; `backward_pass` goes back through a net,
`sums` adds up what several operators give. Imported when the first gradient is asked for.
"""
