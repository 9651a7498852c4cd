"""Decoding of L3 strips in Triton. The sections named are those of docs/formats/l3.md, whose words are used here.

A strip is decoded without the others, and its samples are kept in one buffer of bytes, row by row, in a row byte plane by byte
plane, in coding order (all of phase 0, then 2, 1 and 3). `fast` is three kernels: where each block of values begins
(`block_offsets`), the values (`unpack`), and samples in their place (`predict`). `dense` is one kernel, since the table of
a symbol depends on samples (`entropy`). The last one (`finish`) makes pixels of samples, whichever way they came.

Nothing that a payload says leads outside of a buffer: offsets and lengths were checked on the CPU, and whatever a
stream asks for beyond its end is masked out of the load. A program that finds its stream wrong says so in `status`.

Rows are values in registers, carried from one to the next; neighbors come by `tl.gather`. So no thread reads from memory what another
one has written, and there are no barriers to forget. It limits the width to four times the largest `BLOCK`.
"""

import triton
import triton.language as tl

# The numbers of a strip: those of `L3StripBatch`, then those that `_batch.py` adds.
STRIP = tl.constexpr(20)
WIDTH = tl.constexpr(2)
FIRST_ROW = tl.constexpr(3)
ROWS = tl.constexpr(4)
CHANNELS = tl.constexpr(5)
SAMPLE_BYTES = tl.constexpr(6)
COLOR = tl.constexpr(7)
PREDICTOR = tl.constexpr(8)
# fast: headers, values, bytes of values; dense: first plane, first context, shifts.
FIRST = tl.constexpr(9)
SECOND = tl.constexpr(10)
THIRD = tl.constexpr(11)
# Where its samples and its blocks begin, and its image in the output; top, left, height and width of what is wanted of that.
SAMPLES = tl.constexpr(12)
BLOCKS = tl.constexpr(13)
OUTPUT = tl.constexpr(14)
TOP = tl.constexpr(15)
LEFT = tl.constexpr(16)
CROP_HEIGHT = tl.constexpr(17)
CROP_WIDTH = tl.constexpr(18)

# What a program says of its stream; 0 where nothing is wrong.
BAD_HEADER = tl.constexpr(1)
BAD_VALUES = tl.constexpr(2)
BAD_WORDS = tl.constexpr(4)
BAD_ESCAPES = tl.constexpr(8)
BAD_STATE = tl.constexpr(16)

STATE_LOW = tl.constexpr(1 << 15)


@triton.jit
def _number(strip, index):
    return tl.load(strip + index).to(tl.int32)


@triton.jit
def _header(headers, block, there):
    """The 24 bits of a block's header (section 5)."""
    low = tl.load(headers + 3 * block, mask=there, other=0).to(tl.int32)
    middle = tl.load(headers + 3 * block + 1, mask=there, other=0).to(tl.int32)
    high = tl.load(headers + 3 * block + 2, mask=there, other=0).to(tl.int32)
    return low | (middle << 8) | (high << 16)


@triton.jit
def _bits(header, group):
    """The width of the values of a group."""
    code = (header >> (3 * group)) & 7
    return tl.where(code == 7, 8, code)


@triton.jit
def _group_bytes(header, group, values):
    present = tl.minimum(tl.maximum(values - 8 * group, 0), 8)
    return (present * _bits(header, group) + 7) >> 3


@triton.jit
def block_offsets(strips, data, offsets, status, CHUNK: tl.constexpr):
    """Where the values of each block begin: a program for each strip, which adds up what headers say."""
    strip = strips + tl.program_id(0) * STRIP
    width = _number(strip, WIDTH)
    across = (width + 63) // 64
    count = _number(strip, ROWS) * _number(strip, CHANNELS) * _number(strip, SAMPLE_BYTES) * across
    headers = data + tl.load(strip + FIRST)
    offsets += tl.load(strip + BLOCKS)
    at = tl.program_id(0) * 0
    bad = tl.program_id(0) * 0
    for start in range(0, count, CHUNK):
        block = start + tl.arange(0, CHUNK)
        there = block < count
        header = _header(headers, block, there)
        values = tl.minimum(width - 64 * (block % across), 64)
        size = tl.zeros([CHUNK], tl.int32)
        excess = tl.zeros([CHUNK], tl.int32)
        for group in tl.static_range(8):
            size += _group_bytes(header, group, values)
            excess |= tl.where(8 * group >= values, _bits(header, group), 0)
        size = tl.where(there, size, 0)
        tl.store(offsets + block, at + tl.cumsum(size, 0) - size, mask=there)
        at += tl.sum(size, 0)
        bad = tl.maximum(bad, tl.max(excess, 0))
    wrong = tl.where(bad > 0, BAD_HEADER, 0) + tl.where(at != _number(strip, THIRD), BAD_VALUES, 0)
    tl.store(status + 4 * tl.program_id(0), wrong)


@triton.jit
def unpack(strips, data, offsets, samples, BLOCK_COUNT: tl.constexpr):
    """The values of blocks (section 5), as they lie: programs share the blocks of a strip."""
    strip = strips + tl.program_id(0) * STRIP
    width = _number(strip, WIDTH)
    across = (width + 63) // 64
    count = _number(strip, ROWS) * _number(strip, CHANNELS) * _number(strip, SAMPLE_BYTES) * across
    headers = data + tl.load(strip + FIRST)
    values_bytes = _number(strip, THIRD)
    data += tl.load(strip + SECOND)
    offsets += tl.load(strip + BLOCKS)
    samples += tl.load(strip + SAMPLES)
    lane = tl.arange(0, 64)[None, :]
    group = lane // 8
    one = tl.full([1, 1], 1, tl.int32)
    for start in range(tl.program_id(1) * BLOCK_COUNT, count, tl.num_programs(1) * BLOCK_COUNT):
        block = start + tl.arange(0, BLOCK_COUNT)[:, None]
        there = block < count
        header = _header(headers, block, there)
        column = 64 * (block % across)
        values = tl.minimum(width - column, 64)
        place = tl.load(offsets + block, mask=there, other=0) + tl.zeros([BLOCK_COUNT, 64], tl.int32)
        for before in tl.static_range(7):
            place += tl.where(before < group, _group_bytes(header, before, values), 0)
        bits = _bits(header, group)
        bit = (lane % 8) * bits
        place += bit >> 3
        bit = bit & 7
        wanted = there & (lane < values)
        low = tl.load(data + place, mask=wanted & (place < values_bytes), other=0).to(tl.int32)
        high = tl.load(data + place + 1, mask=wanted & (bit + bits > 8) & (place + 1 < values_bytes), other=0).to(tl.int32)
        value = ((low | (high << 8)) >> bit) & ((one << bits) - 1)
        tl.store(samples + (block // across) * width + column + lane, value.to(tl.uint8), mask=wanted)


@triton.jit
def _average(a, b):
    return (a + b + 1) >> 1


@triton.jit
def _median(a, b, c):
    low = tl.minimum(a, b)
    high = tl.maximum(a, b)
    return a + b - tl.minimum(tl.maximum(c, low), high)


@triton.jit
def _unzigzag(z):
    return (z >> 1) ^ (0 - (z & 1))


@triton.jit
def _shifted(samples, index, count):
    """The sample behind each, and the last behind itself (section 2: 0[c(0)] is 0[c(0) − 1])."""
    return tl.gather(samples, tl.minimum(index + 1, count - 1), 0)


@triton.jit
def _before(third, zeroth, index):
    """3[i − 1] for each i; 3[−1] is 0[0] (section 2)."""
    return tl.where(index == 0, zeroth, tl.gather(third, tl.maximum(index - 1, 0), 0))


@triton.jit
def _from_above(above, above_left, above_right, smooth, LARGEST: tl.constexpr):
    """Prediction and activity of phase 0 (sections 4 and 6.2)."""
    prediction = tl.where(smooth, _average(_average(above_left, above_right), above), above)
    activity = tl.minimum(tl.abs(above - above_left) + tl.abs(above - above_right), LARGEST)
    return prediction, activity


@triton.jit
def _between(left, right, above, above_left, above_right, smooth, first, LARGEST: tl.constexpr):
    """Prediction and activity of the other phases; in the first row of a strip there is nothing above."""
    middle = _average(left, right)
    middle_above = _average(above_left, above_right)
    median = _median(middle, above, middle_above)
    prediction = tl.where(first, middle, tl.where(smooth, _average(middle, median), median))
    apart = tl.abs(left - right)
    activity = tl.minimum(_average(apart, tl.abs(middle - middle_above)) + tl.abs(above - middle_above), LARGEST)
    return prediction, tl.where(first, apart, activity)


@triton.jit
def _zeroth(prediction, residuals, index, count, first, HALF: tl.constexpr, LARGEST: tl.constexpr):
    """Samples of phase 0. In the first row of a strip each is predicted by the one before it."""
    if first:  # noqa: SIM108 (both branches are Triton's)
        samples = HALF + tl.cumsum(tl.where(index < count, residuals, 0), 0)
    else:
        samples = prediction + residuals
    return samples & LARGEST


@triton.jit
def _load_row(line, low_plane, start, index, count, BYTES: tl.constexpr):
    """The residuals of a phase."""
    there = index < count
    z = tl.load(line + start + index, mask=there, other=0).to(tl.int32)
    if BYTES == 2:
        z = (z << 8) | tl.load(line + low_plane + start + index, mask=there, other=0).to(tl.int32)
    return z


@triton.jit
def _store_row(line, low_plane, start, index, count, values, BYTES: tl.constexpr):
    """The samples of a phase, in the place of its residuals."""
    there = index < count
    if BYTES == 2:
        tl.store(line + start + index, (values >> 8).to(tl.uint8), mask=there)
        tl.store(line + low_plane + start + index, (values & 255).to(tl.uint8), mask=there)
    else:
        tl.store(line + start + index, values.to(tl.uint8), mask=there)


@triton.jit
def predict(strips, samples, BYTES: tl.constexpr, BLOCK: tl.constexpr):
    """Samples of residuals, in place (section 4): a program for each channel of each strip."""
    LARGEST: tl.constexpr = 255 if BYTES == 1 else 65535
    HALF: tl.constexpr = 128 if BYTES == 1 else 32768
    strip = strips + tl.program_id(0) * STRIP
    width = _number(strip, WIDTH)
    channels = _number(strip, CHANNELS)
    smooth = _number(strip, PREDICTOR) == 1
    line = samples + tl.load(strip + SAMPLES) + tl.program_id(1) * width
    low_plane = channels * width
    row_bytes = BYTES * channels * width
    i = tl.arange(0, BLOCK)
    c0 = (width + 3) // 4
    c1 = (width + 2) // 4
    c2 = (width + 1) // 4
    c3 = width // 4
    p0 = tl.zeros([BLOCK], tl.int32)
    n0 = p0
    p1 = p0
    p2 = p0
    p3 = p0
    s3 = p0
    for row in range(_number(strip, ROWS)):
        first = row == 0
        p, _a = _from_above(p0, s3, p1, smooth, LARGEST)
        r = _unzigzag(_load_row(line, low_plane, 0, i, c0, BYTES))
        q0 = _zeroth(p, r, i, c0, first, HALF, LARGEST)
        m0 = _shifted(q0, i, c0)
        p, _a = _between(q0, m0, p2, p0, n0, False, first, LARGEST)
        q2 = (p + _unzigzag(_load_row(line, low_plane, c0, i, c2, BYTES))) & LARGEST
        q2 = tl.where(i < c2, q2, q0)
        p, _a = _between(q0, q2, p1, p0, p2, smooth, first, LARGEST)
        q1 = (p + _unzigzag(_load_row(line, low_plane, c0 + c2, i, c1, BYTES))) & LARGEST
        q1 = tl.where(i < c1, q1, q0)
        p, _a = _between(q2, m0, p3, p2, n0, smooth, first, LARGEST)
        q3 = (p + _unzigzag(_load_row(line, low_plane, c0 + c2 + c1, i, c3, BYTES))) & LARGEST
        _store_row(line, low_plane, 0, i, c0, q0, BYTES)
        _store_row(line, low_plane, c0, i, c2, q2, BYTES)
        _store_row(line, low_plane, c0 + c2, i, c1, q1, BYTES)
        _store_row(line, low_plane, c0 + c2 + c1, i, c3, q3, BYTES)
        s3 = _before(q3, q0, i)
        p0 = q0
        n0 = m0
        p1 = q1
        p2 = q2
        p3 = q3
        line += row_bytes


@triton.jit
def _symbols(tables, count, states, word_at, words, words_end, escape_at, escapes, escapes_end, entries, BLOCK: tl.constexpr):
    """The values of a phase (section 6.3), whose tables are known; and where reading stands then.

    Lanes are in the order in which states are refilled: lane q has value 4 (q mod 32 / 2) + 2 (q / 32) + q mod 2 of a group.
    """
    q = tl.arange(0, 64)
    i = tl.arange(0, BLOCK)
    value_of_lane = (q % 32) // 2 * 4 + q // 32 * 2 + q % 2
    lane_of_value = i % 4 // 2 * 32 + i % 64 // 4 * 2 + i % 2
    values = tl.zeros([BLOCK], tl.int32)
    for group in range((count + 63) // 64):
        place = 64 * group + value_of_lane
        there = place < count
        table = tl.gather(tables, tl.minimum(place, BLOCK - 1), 0)
        entry = tl.load(entries + table * 1024 + (states & 1023), mask=there, other=0)
        states = tl.where(there, ((entry >> 8) & 0xFFF) * (states >> 10) + (entry >> 20), states)
        empty = states < STATE_LOW
        wants = empty.to(tl.int32)
        at = word_at + tl.cumsum(wants, 0) - wants
        word = tl.load(words + at, mask=empty & (at < words_end), other=0).to(tl.int32) & 0xFFFF
        states = tl.where(empty, (states << 16) | word, states)
        word_at += tl.sum(wants, 0)
        values = tl.where(i // 64 == group, tl.gather(entry & 255, lane_of_value, 0), values)
    escaped = (values == 255) & (i < count)
    wants = escaped.to(tl.int32)
    at = escape_at + tl.cumsum(wants, 0) - wants
    byte = tl.load(escapes + at, mask=escaped & (at < escapes_end), other=0).to(tl.int32)
    return tl.where(escaped, byte, values), states, word_at, escape_at + tl.sum(wants, 0)


@triton.jit
def _level(activity, shift):
    activity = tl.minimum(activity >> shift, 255)
    level = (activity >= 1).to(tl.int32) + (activity >= 3).to(tl.int32) + (activity >= 6).to(tl.int32)
    level += (activity >= 10).to(tl.int32) + (activity >= 16).to(tl.int32) + (activity >= 28).to(tl.int32)
    return level + (activity >= 52).to(tl.int32)


@triton.jit
def _phase(
    level, kind, count, contexts, low_contexts, entries,
    states, word_at, words, words_end, escape_at, escapes, escapes_end,
    low_states, low_word_at, low_words, low_words_end, low_escape_at, low_escapes, low_escapes_end,
    BYTES: tl.constexpr, BLOCK: tl.constexpr,
):
    """The residuals of a phase, and where reading its one or two byte planes stands then."""
    tables = tl.load(contexts + 8 * kind + level)
    z, states, word_at, escape_at = _symbols(
        tables, count, states, word_at, words, words_end, escape_at, escapes, escapes_end, entries, BLOCK
    )
    if BYTES == 2:
        tables = tl.load(low_contexts + 8 * kind + tl.minimum(z, 7))
        low, low_states, low_word_at, low_escape_at = _symbols(
            tables, count, low_states, low_word_at, low_words, low_words_end,
            low_escape_at, low_escapes, low_escapes_end, entries, BLOCK,
        )
        z = (z << 8) | low
    return _unzigzag(z), states, word_at, escape_at, low_states, low_word_at, low_escape_at


@triton.jit
def _wrong(states, word_at, words_end, escape_at, escapes_end):
    wrong = tl.where(word_at != words_end, BAD_WORDS, 0) + tl.where(escape_at != escapes_end, BAD_ESCAPES, 0)
    return wrong + tl.where(tl.sum((states != STATE_LOW).to(tl.int32), 0) > 0, BAD_STATE, 0)


@triton.jit
def entropy(
    strips, data, words, planes, first_states, contexts, entries, samples, status,
    BYTES: tl.constexpr, BLOCK: tl.constexpr,
):
    """Samples of a `dense` strip (section 6): a program for each channel, which reads its one or two byte planes."""
    LARGEST: tl.constexpr = 255 if BYTES == 1 else 65535
    HALF: tl.constexpr = 128 if BYTES == 1 else 32768
    strip = strips + tl.program_id(0) * STRIP
    channel = tl.program_id(1)
    width = _number(strip, WIDTH)
    channels = _number(strip, CHANNELS)
    smooth = _number(strip, PREDICTOR) == 1
    shift = (_number(strip, THIRD) >> (4 * channel)) & 15
    line = samples + tl.load(strip + SAMPLES) + channel * width
    low_plane = channels * width
    row_bytes = BYTES * channels * width
    lane = tl.arange(0, 64)
    i = tl.arange(0, BLOCK)
    c0 = (width + 3) // 4
    c1 = (width + 2) // 4
    c2 = (width + 1) // 4
    c3 = width // 4
    context = contexts + tl.load(strip + SECOND) + 24 * channel
    plane = planes + (tl.load(strip + FIRST) + channel) * 4
    state = tl.load(first_states + (tl.load(strip + FIRST) + channel) * 64 + lane)
    word = words + tl.load(plane) // 2
    words_end = _number(plane, 1)
    escape = data + tl.load(plane + 2)
    escapes_end = _number(plane, 3)
    word_at = channel * 0
    escape_at = channel * 0
    # Of 8-bit samples there is no low plane: the one there is stands in, and nothing is read of it.
    low_index = channel + (BYTES - 1) * channels
    low_context = contexts + tl.load(strip + SECOND) + 24 * low_index
    plane = planes + (tl.load(strip + FIRST) + low_index) * 4
    low_state = tl.load(first_states + (tl.load(strip + FIRST) + low_index) * 64 + lane)
    low_word = words + tl.load(plane) // 2
    low_words_end = _number(plane, 1)
    low_escape = data + tl.load(plane + 2)
    low_escapes_end = _number(plane, 3)
    low_word_at = channel * 0
    low_escape_at = channel * 0

    p0 = tl.zeros([BLOCK], tl.int32)
    n0 = p0
    p1 = p0
    p2 = p0
    p3 = p0
    s3 = p0
    for row in range(_number(strip, ROWS)):
        first = row == 0
        p, activity = _from_above(p0, s3, p1, smooth, LARGEST)
        # Of phase 0 of the first row the activity is 20, before any shift: that is level 5.
        r, state, word_at, escape_at, low_state, low_word_at, low_escape_at = _phase(
            tl.where(first, 5, _level(activity, shift)), 0, c0, context, low_context, entries,
            state, word_at, word, words_end, escape_at, escape, escapes_end,
            low_state, low_word_at, low_word, low_words_end, low_escape_at, low_escape, low_escapes_end, BYTES, BLOCK,
        )
        q0 = _zeroth(p, r, i, c0, first, HALF, LARGEST)
        m0 = _shifted(q0, i, c0)
        p, activity = _between(q0, m0, p2, p0, n0, False, first, LARGEST)
        r, state, word_at, escape_at, low_state, low_word_at, low_escape_at = _phase(
            _level(activity, shift), 1, c2, context, low_context, entries,
            state, word_at, word, words_end, escape_at, escape, escapes_end,
            low_state, low_word_at, low_word, low_words_end, low_escape_at, low_escape, low_escapes_end, BYTES, BLOCK,
        )
        q2 = tl.where(i < c2, (p + r) & LARGEST, q0)
        p, activity = _between(q0, q2, p1, p0, p2, smooth, first, LARGEST)
        r, state, word_at, escape_at, low_state, low_word_at, low_escape_at = _phase(
            _level(activity, shift), 2, c1, context, low_context, entries,
            state, word_at, word, words_end, escape_at, escape, escapes_end,
            low_state, low_word_at, low_word, low_words_end, low_escape_at, low_escape, low_escapes_end, BYTES, BLOCK,
        )
        q1 = tl.where(i < c1, (p + r) & LARGEST, q0)
        p, activity = _between(q2, m0, p3, p2, n0, smooth, first, LARGEST)
        r, state, word_at, escape_at, low_state, low_word_at, low_escape_at = _phase(
            _level(activity, shift), 2, c3, context, low_context, entries,
            state, word_at, word, words_end, escape_at, escape, escapes_end,
            low_state, low_word_at, low_word, low_words_end, low_escape_at, low_escape, low_escapes_end, BYTES, BLOCK,
        )
        q3 = (p + r) & LARGEST
        _store_row(line, low_plane, 0, i, c0, q0, BYTES)
        _store_row(line, low_plane, c0, i, c2, q2, BYTES)
        _store_row(line, low_plane, c0 + c2, i, c1, q1, BYTES)
        _store_row(line, low_plane, c0 + c2 + c1, i, c3, q3, BYTES)
        s3 = _before(q3, q0, i)
        p0 = q0
        n0 = m0
        p1 = q1
        p2 = q2
        p3 = q3
        line += row_bytes
    wrong = _wrong(state, word_at, words_end, escape_at, escapes_end)
    if BYTES == 2:
        wrong |= _wrong(low_state, low_word_at, low_words_end, low_escape_at, low_escapes_end)
    tl.store(status + 4 * tl.program_id(0) + channel, wrong)


@triton.jit
def _sample(place, low_plane, there, BYTES: tl.constexpr):
    value = tl.load(place, mask=there, other=0).to(tl.int32)
    if BYTES == 2:
        value = (value << 8) | tl.load(place + low_plane, mask=there, other=0).to(tl.int32)
    return value


@triton.jit
def _put(output, value, affine, channel, there, AFFINE: tl.constexpr):
    if AFFINE:
        value = value.to(tl.float32) * tl.load(affine + channel) + tl.load(affine + 4 + channel)
    tl.store(output, value.to(output.dtype.element_ty), mask=there)


@triton.jit
def finish(
    strips, samples, output, affine,
    PLANES: tl.constexpr, BYTES: tl.constexpr, AFFINE: tl.constexpr, CHANNELS_FIRST: tl.constexpr, BLOCK: tl.constexpr,
):
    """Pixels of samples: colors (section 3), what is wanted of the image, converted where that is asked for."""
    LARGEST: tl.constexpr = 255 if BYTES == 1 else 65535
    HALF: tl.constexpr = 128 if BYTES == 1 else 32768
    strip = strips + tl.program_id(0) * STRIP
    width = _number(strip, WIDTH)
    pixels = _number(strip, ROWS) * width
    color = _number(strip, COLOR)
    luma = color >= 3
    shift = tl.where(color == 2, 1, tl.where(color == 3, 2, 0))
    top = _number(strip, TOP) - _number(strip, FIRST_ROW)
    left = _number(strip, LEFT)
    crop_height = _number(strip, CROP_HEIGHT)
    crop_width = _number(strip, CROP_WIDTH)
    samples += tl.load(strip + SAMPLES)
    output += tl.load(strip + OUTPUT)
    c0 = (width + 3) // 4
    c1 = (width + 2) // 4
    c2 = (width + 1) // 4
    low_plane = PLANES * width
    for start in range(tl.program_id(1) * BLOCK, pixels, tl.num_programs(1) * BLOCK):
        pixel = start + tl.arange(0, BLOCK)
        y = pixel // width
        x = pixel - y * width
        there = (pixel < pixels) & (y >= top) & (y < top + crop_height) & (x >= left) & (x < left + crop_width)
        phase = x & 3
        begin = tl.where(phase == 0, 0, tl.where(phase == 2, c0, tl.where(phase == 1, c0 + c2, c0 + c2 + c1)))
        place = samples + y * (BYTES * PLANES * width) + begin + (x >> 2)
        target = (y - top) * crop_width + (x - left)
        step = crop_height * crop_width
        if not CHANNELS_FIRST:
            target = target * PLANES
            step = 1
        first = _sample(place, low_plane, there, BYTES)
        if PLANES <= 2:
            _put(output + target, first, affine, 0, there, AFFINE)
            if PLANES == 2:
                second = _sample(place + width, low_plane, there, BYTES)
                _put(output + target + step, second, affine, 1, there, AFFINE)
        else:
            u = _sample(place + width, low_plane, there, BYTES)
            third = _sample(place + 2 * width, low_plane, there, BYTES)
            v = (third + tl.where(shift > 0, (u >> shift) - (HALF >> shift), 0)) & LARGEST
            both = (u + v + HALF) & LARGEST
            green = (first - tl.where(luma, (both >> 2) - (HALF >> 2), 0)) & LARGEST
            red = (u + green + HALF) & LARGEST
            blue = (v + green + HALF) & LARGEST
            _put(output + target, tl.where(color == 0, first, red), affine, 0, there, AFFINE)
            _put(output + target + step, tl.where(color == 0, u, green), affine, 1, there, AFFINE)
            _put(output + target + 2 * step, tl.where(color == 0, third, blue), affine, 2, there, AFFINE)
            if PLANES == 4:
                alpha = _sample(place + 3 * width, low_plane, there, BYTES)
                _put(output + target + 3 * step, alpha, affine, 3, there, AFFINE)
