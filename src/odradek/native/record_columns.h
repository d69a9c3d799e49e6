/* Positions of all keys, values and headers of many batches, and the gathering of the pieces: the same loops as
   odradek/apps/pipeline/arrow_records/record_decoder.py, over the same arrays of 64-bit numbers.

   Answers are the twin's: the number of the first batch that is not what its header says, or -1. */

enum { POSITION_BYTES_MAX = 9 };

typedef struct {
    Py_buffer views[16];
    Py_ssize_t count;
} Arrays;

static void release_arrays(Arrays *arrays) {
    while (arrays->count) PyBuffer_Release(&arrays->views[--arrays->count]);
}

/* Buffers of all arguments: the first `read` of them to be read, the others to be written. */
static int begin_arrays(Arrays *arrays, PyObject *const *args, Py_ssize_t count, Py_ssize_t read) {
    for (arrays->count = 0; arrays->count < count; arrays->count++) {
        int flags = arrays->count < read ? PyBUF_SIMPLE : PyBUF_WRITABLE;
        if (PyObject_GetBuffer(args[arrays->count], &arrays->views[arrays->count], flags) < 0) {
            release_arrays(arrays);
            return 0;
        }
    }
    return 1;
}

static int64_t *numbers(const Arrays *arrays, Py_ssize_t index) { return arrays->views[index].buf; }

static int64_t length_of(const Arrays *arrays, Py_ssize_t index) { return arrays->views[index].len / 8; }

/* Whether the arrays from `first` to `last` have so many numbers at least. */
static int have_room(const Arrays *arrays, Py_ssize_t first, Py_ssize_t last, int64_t wanted) {
    for (Py_ssize_t index = first; index <= last; index++) {
        if (length_of(arrays, index) < wanted) return 0;
    }
    return 1;
}

/* A field that may be absent (-1), and lies before `end`. */
static int find_field(Cursor *cursor, int64_t end, int64_t least, int64_t *at, int64_t *size) {
    if (!read_varint(cursor, POSITION_BYTES_MAX, size)) return 0;
    if (*size < least || *size > end - cursor->at) return 0;
    *at = cursor->at;
    if (*size > 0) cursor->at += *size;
    return 1;
}

enum { AT_DATA, AT_ENDS, AT_COUNTS, AT_BASE_OFFSETS, AT_BASE_TIMES, AT_APPEND_TIMES, AT_OFFSETS, AT_TIMES, AT_FOUND };

/* One record, whose row is `row`; the cursor ends where the record does. */
static int find_record(const Arrays *arrays, Cursor *cursor, int64_t batch, int64_t row) {
    int64_t length, delta, batch_end = cursor->end;
    if (!read_varint(cursor, POSITION_BYTES_MAX, &length) || length < 1 || length > batch_end - cursor->at) return 0;
    int64_t end = cursor->end = cursor->at + length, append_time = numbers(arrays, AT_APPEND_TIMES)[batch];
    cursor->at += 1;
    if (!read_varint(cursor, POSITION_BYTES_MAX, &delta)) return 0;
    uint64_t time = (uint64_t)numbers(arrays, AT_BASE_TIMES)[batch] + (uint64_t)delta;
    numbers(arrays, AT_TIMES)[row] = append_time < 0 ? (int64_t)time : append_time;
    if (!read_varint(cursor, POSITION_BYTES_MAX, &delta)) return 0;
    numbers(arrays, AT_OFFSETS)[row] = (int64_t)((uint64_t)numbers(arrays, AT_BASE_OFFSETS)[batch] + (uint64_t)delta);
    for (int field = 0; field < 4; field += 2) {
        int64_t *at = numbers(arrays, AT_FOUND + field), *size = numbers(arrays, AT_FOUND + field + 1);
        if (!find_field(cursor, end, -1, &at[row], &size[row])) return 0;
    }
    int64_t headers;
    if (!read_varint(cursor, POSITION_BYTES_MAX, &headers) || headers < 0 || headers > end - cursor->at) return 0;
    numbers(arrays, AT_FOUND + 4)[row] = cursor->at;
    numbers(arrays, AT_FOUND + 5)[row] = headers;
    cursor->at = end;
    cursor->end = batch_end;
    return 1;
}

static int64_t find_records(const Arrays *arrays) {
    int64_t batches = length_of(arrays, AT_ENDS), row = 0, rows = length_of(arrays, AT_OFFSETS);
    Cursor cursor = {arrays->views[AT_DATA].buf, 0, 0};
    for (int64_t batch = 0; batch < batches; batch++) {
        int64_t end = numbers(arrays, AT_ENDS)[batch], count = numbers(arrays, AT_COUNTS)[batch];
        if (end < cursor.at || end > arrays->views[AT_DATA].len || count < 0 || count > rows - row) return batch;
        cursor.end = end;
        while (count--) {
            if (!find_record(arrays, &cursor, batch, row++)) return batch;
        }
        if (cursor.at != end) return batch;
    }
    return -1;
}

/* Keys and values of all headers: data, headers_at, header_count, key_at, key_size, value_at, value_size. */
static int find_headers(const Arrays *arrays) {
    int64_t rows = length_of(arrays, 1), found = 0, room = length_of(arrays, 3);
    Cursor cursor = {arrays->views[0].buf, 0, arrays->views[0].len};
    for (int64_t row = 0; row < rows; row++) {
        cursor.at = numbers(arrays, 1)[row];
        if (cursor.at < 0 || cursor.at > cursor.end) return 0;
        for (int64_t left = numbers(arrays, 2)[row]; left > 0; left--, found++) {
            if (found >= room) return 0;
            if (!find_field(&cursor, cursor.end, 0, &numbers(arrays, 3)[found], &numbers(arrays, 4)[found])) return 0;
            if (!find_field(&cursor, cursor.end, -1, &numbers(arrays, 5)[found], &numbers(arrays, 6)[found])) return 0;
        }
    }
    return 1;
}

/* Pieces of `data` end to end, and where each ends, in 32 bits: data, at, size, out, out_offsets. 0 where one has no place. */
static int gather_pieces(const Arrays *arrays) {
    const int64_t *at = numbers(arrays, 1), *size = numbers(arrays, 2), rows = length_of(arrays, 1);
    int64_t data_size = arrays->views[0].len, room = arrays->views[3].len, end = 0;
    int32_t *offsets = arrays->views[4].buf;
    if (length_of(arrays, 2) < rows || arrays->views[4].len / 4 <= rows || room > INT32_MAX) return 0;
    for (int64_t row = 0; row < rows; row++) {
        offsets[row] = (int32_t)end;
        if (size[row] <= 0) continue;
        if (at[row] < 0 || size[row] > data_size - at[row] || size[row] > room - end) return 0;
        memcpy((uint8_t *)arrays->views[3].buf + end, (const uint8_t *)arrays->views[0].buf + at[row], (size_t)size[row]);
        end += size[row];
    }
    offsets[rows] = (int32_t)end;
    return 1;
}
