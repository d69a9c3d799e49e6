/* Walks over plain records: the same loops as odradek/protocol/record_walk.py, and the same steps to charge.

   A walk that meets anything wrong answers so and says no more: the Python twin then finds out what it is. Every byte is
   compared with the end before it is read; positions have 64 bits, and no length has more than 35. */

#include <stdint.h>

enum { MIN_RECORD_SIZE = 7, LENGTH_STEPS = 5, LONG_VARINT_STEPS = 50, HEADER_STEPS = 14, MAX_INT_BYTES = 5, MAX_VARINT_BYTES = 10 };

typedef struct {
    const uint8_t *data;
    int64_t at, end;
} Cursor;

typedef struct {
    int64_t low, high, keyless, steps;
} Span;

static int64_t unzigzag(uint64_t value) { return (int64_t)(value >> 1) ^ -(int64_t)(value & 1); }

/* A zigzag varint of at most so many bytes; 0 when it doesn't end, or is more than 64 bits. */
static int read_varint(Cursor *cursor, int most, int64_t *value) {
    uint64_t found = 0;
    for (int place = 0; place < most; place++) {
        if (cursor->at >= cursor->end) return 0;
        uint8_t byte = cursor->data[cursor->at++];
        if (place == 9 && byte > 1) return 0;
        found |= (uint64_t)(byte & 0x7f) << 7 * place;
        if (byte < 0x80) {
            *value = unzigzag(found);
            return place + 1;
        }
    }
    return 0;
}

/* Whether `expected` records end where the data ends; adds what lengths of more than two bytes cost. */
static int count_records(Cursor cursor, int64_t expected, int64_t *steps) {
    for (int64_t count = 0; count < expected; count++) {
        int64_t start = cursor.at, length;
        int bytes = read_varint(&cursor, MAX_INT_BYTES, &length);
        if (!bytes || length < 0 || length > cursor.end - cursor.at) return 0;
        cursor.at += length;
        if (cursor.at - start < MIN_RECORD_SIZE) return 0;
        if (bytes > 2) *steps += LONG_VARINT_STEPS;
    }
    return cursor.at == cursor.end;
}

/* Past a field of so many bytes, which may end anywhere: the next read looks whether there is more. */
static int skip_field(Cursor *cursor, int64_t *size, Span *span) {
    int bytes = read_varint(cursor, MAX_INT_BYTES, size);
    if (bytes > 1) span->steps += LONG_VARINT_STEPS;
    if (bytes && *size > 0) cursor->at += *size;
    return bytes;
}

static int skip_record_headers(Cursor *cursor, int64_t stop, Span *span) {
    int64_t count, size;
    if (!read_varint(cursor, MAX_INT_BYTES, &count) || count < 0 || count > stop - cursor->at) return 0;
    span->steps += count * HEADER_STEPS;
    while (count--) {
        if (!skip_field(cursor, &size, span) || size < 0) return 0;
        if (!skip_field(cursor, &size, span)) return 0;
    }
    return 1;
}

/* Every field of every record: whether they fit, and offsets are 0, 1, 2 ... */
static int walk_records(Cursor cursor, int64_t expected, Span *span) {
    for (int64_t index = 0; index < expected; index++) {
        int64_t length, delta, size;
        int bytes = read_varint(&cursor, MAX_INT_BYTES, &length);
        if (bytes > 2) span->steps += LONG_VARINT_STEPS;
        if (!bytes || length <= 1 || length > cursor.end - cursor.at) return 0;
        int64_t stop = cursor.at + length;
        cursor.at += 1;
        if (!(bytes = read_varint(&cursor, MAX_VARINT_BYTES, &delta))) return 0;
        if (bytes > 1) span->steps += LONG_VARINT_STEPS;
        if (delta > span->high) span->high = delta;
        if (delta < span->low) span->low = delta;
        if (!(bytes = read_varint(&cursor, MAX_INT_BYTES, &delta)) || delta != index) return 0;
        if (bytes > 2) span->steps += LONG_VARINT_STEPS;
        if (!skip_field(&cursor, &size, span)) return 0;
        span->keyless += size < 0;
        if (!skip_field(&cursor, &size, span)) return 0;
        if (!skip_record_headers(&cursor, stop, span)) return 0;
        if (cursor.at != stop) return 0;
    }
    return cursor.at == cursor.end;
}
