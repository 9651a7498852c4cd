/* Decodes a JPEG with the bare library and counts every warning, which the interface that we use elsewhere does not tell. */
#include <setjmp.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <jpeglib.h>
#include <jerror.h>

struct judge {
  struct jpeg_error_mgr manager;
  jmp_buf failed;
  unsigned harmless;
  unsigned harmful;
  int first;
};

static void fail(j_common_ptr info) { longjmp(((struct judge *)info->err)->failed, 1); }

static void tell(j_common_ptr info, int level) {
  struct judge *judge = (struct judge *)info->err;
  if (level >= 0) return;
  switch (info->err->msg_code) {
    /* A header that is odd, but means one thing: docs/formats/images.md. */
    case JWRN_ADOBE_XFORM:
    case JWRN_JFIF_MAJOR:
    case JWRN_NOT_SEQUENTIAL:
      judge->harmless++;
      break;
    /* Bytes between the segments of the header belong to nobody; later they may be lost pixels. */
    case JWRN_EXTRANEOUS_DATA:
      if (((j_decompress_ptr)info)->input_scan_number == 0) {
        judge->harmless++;
        break;
      }
      /* fall through */
    default:
      if (judge->harmful++ == 0) judge->first = info->err->msg_code;
  }
}

/* What the caller gets beside the pixels. */
struct verdict {
  uint32_t width, height, harmless, harmful;
  /* The library's sentence for its first harmful warning, or for its error. */
  char message[JMSG_LENGTH_MAX];
};

/* 0: decoded to the end, whatever the warnings. 1: an error. 2: larger than `max_pixels`, or nothing that fits `channels`.
 * `pixels` must hold `max_pixels` × `channels` bytes; `channels` is 1 (Y) or 3 (RGB). */
int fuzz_libjpeg_decode(const uint8_t *bytes, size_t length, int channels, uint8_t *pixels, size_t max_pixels,
                        struct verdict *verdict) {
  struct jpeg_decompress_struct info;
  struct judge judge;
  memset(&judge, 0, sizeof judge);
  memset(verdict, 0, sizeof *verdict);
  info.err = jpeg_std_error(&judge.manager);
  judge.manager.error_exit = fail;
  judge.manager.emit_message = tell;
  volatile int status = 1;
  if (setjmp(judge.failed)) {
    info.err->format_message((j_common_ptr)&info, verdict->message);
    goto end;
  }
  jpeg_create_decompress(&info);
  jpeg_mem_src(&info, bytes, length);
  jpeg_read_header(&info, TRUE);
  verdict->width = info.image_width;
  verdict->height = info.image_height;
  if ((size_t)info.image_width * info.image_height > max_pixels || (info.num_components != 1 && info.num_components != 3)) {
    status = 2;
    goto end;
  }
  info.out_color_space = channels == 1 ? JCS_GRAYSCALE : JCS_RGB;
  jpeg_start_decompress(&info);
  while (info.output_scanline < info.output_height) {
    JSAMPROW row = pixels + (size_t)info.output_scanline * info.output_width * channels;
    jpeg_read_scanlines(&info, &row, 1);
  }
  jpeg_finish_decompress(&info);
  status = 0;
end:
  verdict->harmless = judge.harmless;
  verdict->harmful = judge.harmful;
  if (status == 0 && judge.harmful) {
    info.err->msg_code = judge.first;
    snprintf(verdict->message, sizeof verdict->message, "warning %d: %s", judge.first, info.err->jpeg_message_table[judge.first]);
  }
  jpeg_destroy_decompress(&info);
  return status;
}
