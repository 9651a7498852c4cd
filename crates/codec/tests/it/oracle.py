"""Decodes pictures with the established tools, for the Rust side to compare with.

Reads one path a line from standard input. For each it writes two records to standard output: the picture as upright 8-bit
RGB, and as stored (channels and depth). A record is `kind height width channels bytes-per-sample length` in ASCII and a
line feed, then `length` raw bytes, samples little-endian; of `kind` `skip` the bytes are the reason.
"""

import sys
import warnings

try:
    import numpy as np
    from PIL import Image, ImageOps
except ImportError as error:
    sys.exit(f"{error}")

Image.MAX_IMAGE_PIXELS = None
warnings.simplefilter("ignore")


def png_depth(path):
    """Bits per sample of a PNG, or 8: Pillow does not tell, and reduces 16-bit RGB to 8 by itself."""
    with open(path, "rb") as file:
        head = file.read(25)
    return head[24] if head.startswith(b"\x89PNG") else 8


def upright_rgb(path):
    picture = ImageOps.exif_transpose(Image.open(path))
    if picture.mode.startswith("I"):
        gray = (np.asarray(picture).astype(np.uint32) >> 8).astype(np.uint8)
        return np.repeat(gray[:, :, None], 3, axis=2)
    return np.asarray(picture.convert("RGB"))


def with_key(gray, key, full):
    """Gray and alpha, where the samples equal to `key` are transparent."""
    alpha = np.where(gray == key, 0, full).astype(gray.dtype)
    return np.stack([gray, alpha], axis=2)


def stored_deep(path, picture):
    key = picture.info.get("transparency")
    if picture.mode.startswith("I"):
        gray = np.asarray(picture).astype(np.uint16)
        return gray if key is None else with_key(gray, key, 65535)
    if key is None:
        try:
            import imagecodecs
        except ImportError:
            return "no oracle for 16-bit color: imagecodecs cannot be imported"
        with open(path, "rb") as file:
            return imagecodecs.png_decode(file.read())
    try:
        import cv2
    except ImportError:
        return "no oracle for 16-bit color with a transparent one: cv2 cannot be imported"
    return cv2.imread(path, cv2.IMREAD_UNCHANGED)[:, :, [2, 1, 0, 3]]


def stored(path):
    picture = ImageOps.exif_transpose(Image.open(path))
    depth = png_depth(path)
    if depth == 16:
        return stored_deep(path, picture)
    if picture.mode.startswith("I"):
        return np.asarray(picture).astype(np.uint16)
    transparent = "transparency" in picture.info
    if picture.mode in ("1", "L") and transparent:
        # Pillow compares the key, which is of the stored depth, with samples that it has already scaled to 8 bit.
        key = picture.info["transparency"] if picture.mode == "1" else picture.info["transparency"] * 255 // (2**depth - 1)
        return with_key(np.asarray(picture.convert("L")), key, 255)
    if picture.mode == "P":
        picture = picture.convert("RGBA" if transparent else "RGB")
    elif picture.mode == "1":
        picture = picture.convert("L")
    elif picture.mode == "RGB" and transparent:
        picture = picture.convert("RGBA")
    elif picture.mode == "CMYK":
        picture = picture.convert("RGB")
    return np.asarray(picture)


def emit(result):
    out = sys.stdout.buffer
    if isinstance(result, str):
        reason = result.encode()
        out.write(b"skip 0 0 0 0 %d\n" % len(reason))
        out.write(reason)
        return
    if result.ndim == 2:
        result = result[:, :, None]
    height, width, channels = result.shape
    data = np.ascontiguousarray(result).tobytes()
    out.write(b"ok %d %d %d %d %d\n" % (height, width, channels, result.dtype.itemsize, len(data)))
    out.write(data)


def main():
    for line in sys.stdin:
        path = line.rstrip("\n")
        for decode in (upright_rgb, stored):
            try:
                emit(decode(path))
            except Exception as error:  # the Rust side reports it
                emit(f"{type(error).__name__}: {error}")
        sys.stdout.buffer.flush()


main()
