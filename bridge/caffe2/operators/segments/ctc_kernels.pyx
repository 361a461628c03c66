# SPDX-License-Identifier: Apache-2.0
# cython: language_level=3, boundscheck=False, wraparound=False
"""The search for the most likely label sequences: sums of float32 odds by prefix.

Every sum is rounded to float32, as Caffe2's are: this decides between close ones.
"""


cdef inline int add(dict odds, tuple prefix, float value) except -1:
    """Add to the odds of a prefix."""
    cdef object before = odds.get(prefix)
    odds[prefix] = value if before is None else <float>(<float>before + value)
    return 0


cdef inline float odds_of(dict odds, tuple prefix) except? -1:
    cdef object found = odds.get(prefix)
    return 0 if found is None else <float>found


cdef class Search:
    """The prefixes of one sequence with their odds of ending in a blank (label 0), or a label.

    width: the number of prefixes that are kept per step. threshold: labels with a probability of at
    most that are ignored, unless all are.
    """

    cdef Py_ssize_t width
    cdef float threshold
    cdef dict blank
    cdef dict label
    cdef list beam
    cdef readonly list ranked  # pyi: list[tuple[int, ...]]

    def __init__(self, Py_ssize_t width, float threshold) -> None:
        self.width = width
        self.threshold = threshold
        self.blank = {(): 1.0}
        self.label = {(): 0.0}
        self.beam = [()]
        self.ranked = []

    # pyi: def step(self, given: NDArray[np.float32]) -> None: ...
    def step(self, const float[:] given):
        """Extend the prefixes by the label probabilities of one time step."""
        cdef dict blank = self.blank, label = self.label, total
        cdef list labels
        cdef set beam = set(self.beam)
        cdef tuple prefix
        cdef Py_ssize_t c
        cdef object odds
        self.blank, self.label = {}, {}
        labels = [c for c in range(given.shape[0]) if given[c] > self.threshold]
        if not labels:
            labels = list(range(given.shape[0]))
        for prefix in sorted(self.beam):
            self._extend(prefix, labels, given, beam, blank, label)
        total = dict(self.blank)
        for prefix, odds in self.label.items():
            add(total, prefix, odds)
        # Equal odds are ordered by prefix.
        self.ranked = sorted(sorted(total), key=total.__getitem__, reverse=True)
        self.beam = self.ranked[:self.width]

    cdef int _extend(
        self, tuple prefix, list labels, const float[:] given, set beam, dict blank, dict label
    ) except -1:
        cdef float ends_blank = odds_of(blank, prefix), ends_label = odds_of(label, prefix)
        cdef float either = ends_blank + ends_label, before
        cdef Py_ssize_t last = prefix[len(prefix) - 1] if prefix else -1, c
        cdef tuple longer
        for c in labels:
            if c == 0:
                add(self.blank, prefix, given[0] * either)
                continue
            longer = prefix + (c,)
            if c == last:
                add(self.label, longer, given[c] * ends_blank)
                add(self.label, prefix, given[c] * ends_label)
            else:
                add(self.label, longer, given[c] * either)
            if longer not in beam:
                before = odds_of(blank, longer) + odds_of(label, longer)
                add(self.blank, longer, given[0] * before)
                add(self.label, longer, given[c] * odds_of(label, longer))
        return 0

    def odds(self, tuple prefix: tuple[int, ...]) -> float:
        """Return the odds of a prefix."""
        return <double>odds_of(self.blank, prefix) + <double>odds_of(self.label, prefix)
