/* CRC-32C (Castagnoli) by the processor's own instruction, three lanes at a time.

   The instruction takes three cycles and can begin every cycle, so one lane uses a third of it. Three neighbouring
   blocks are summed up at once and joined: the sum over A and then B is shift(sum(A), length of B) ^ sum(B), where shift
   is linear, so tables of its 4 x 256 values are made once per block length. */

#include <stdint.h>
#include <string.h>

#if defined(__x86_64__) && defined(__GNUC__)
#include <nmmintrin.h>
#define HAS_CRC32C_INSTRUCTION() __builtin_cpu_supports("sse4.2")
#define CRC32C_TARGET __attribute__((target("sse4.2")))
#else
#define HAS_CRC32C_INSTRUCTION() 0
#define CRC32C_TARGET
#define _mm_crc32_u64(sum, word) (sum)
#define _mm_crc32_u8(sum, byte) (sum)
#endif

enum { LONG_LANE = 4096, SHORT_LANE = 256 };

typedef struct {
    size_t lane;
    uint32_t of_byte[4][256];
} Shift;

static Shift long_shift, short_shift;

CRC32C_TARGET static void make_shift(Shift *shift, size_t lane) {
    uint32_t of_bit[32];
    for (int bit = 0; bit < 32; bit++) {
        uint64_t sum = (uint32_t)1 << bit;
        for (size_t done = 0; done < lane; done += 8) sum = _mm_crc32_u64(sum, 0);
        of_bit[bit] = (uint32_t)sum;
    }
    shift->lane = lane;
    for (int place = 0; place < 4; place++)
        for (int byte = 0; byte < 256; byte++) {
            uint32_t sum = 0;
            for (int bit = 0; bit < 8; bit++)
                if (byte >> bit & 1) sum ^= of_bit[8 * place + bit];
            shift->of_byte[place][byte] = sum;
        }
}

static uint32_t shifted(const Shift *shift, uint64_t sum) {
    return shift->of_byte[0][sum & 0xff] ^ shift->of_byte[1][sum >> 8 & 0xff] ^ shift->of_byte[2][sum >> 16 & 0xff] ^
           shift->of_byte[3][sum >> 24 & 0xff];
}

static uint64_t word_at(const uint8_t *at) {
    uint64_t word;
    memcpy(&word, at, 8);
    return word;
}

CRC32C_TARGET static uint64_t add_lanes(uint64_t sum, const uint8_t **data, size_t *size, const Shift *shift) {
    size_t lane = shift->lane;
    while (*size >= 3 * lane) {
        const uint8_t *at = *data;
        uint64_t second = 0, third = 0;
        for (size_t done = 0; done < lane; done += 8, at += 8) {
            sum = _mm_crc32_u64(sum, word_at(at));
            second = _mm_crc32_u64(second, word_at(at + lane));
            third = _mm_crc32_u64(third, word_at(at + 2 * lane));
        }
        sum = shifted(shift, shifted(shift, sum) ^ second) ^ third;
        *data += 3 * lane;
        *size -= 3 * lane;
    }
    return sum;
}

CRC32C_TARGET static uint32_t crc32c(const uint8_t *data, size_t size) {
    uint64_t sum = 0xffffffff;
    sum = add_lanes(sum, &data, &size, &long_shift);
    sum = add_lanes(sum, &data, &size, &short_shift);
    for (; size >= 8; data += 8, size -= 8) sum = _mm_crc32_u64(sum, word_at(data));
    for (; size; data++, size--) sum = _mm_crc32_u8((uint32_t)sum, *data);
    return ~(uint32_t)sum;
}
