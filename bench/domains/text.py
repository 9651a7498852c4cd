"""Tokenizing and article extraction on one core, compared with the usual Python stack, in one run.

    python bench/domains/text.py

Makes a virtual environment below `target/bench-domains` at first, then: the same texts through tiktoken, Hugging Face
tokenizers and Forebay with GPT-2's vocabulary (ids must be equal, ratios are printed); SentencePiece and Hugging Face files
of several kinds, trained on the texts, through both (ids must be equal); and pages through newspaper3k and Forebay. The test
data is looked for in FOREBAY_TEST_DATA or in `../shared/data`.
"""

import argparse
import gzip
import json
import os
import pathlib
import statistics
import subprocess
import sys
import time

ROOT = pathlib.Path(__file__).resolve().parents[2]
DATA = pathlib.Path(os.environ.get("FOREBAY_TEST_DATA", ROOT.parent / "shared" / "data"))
WORK = ROOT / "target" / "bench-domains" / "text"
VENV = ROOT / "target" / "bench-domains" / "text-venv"
PACKAGES = ["tiktoken", "tokenizers", "sentencepiece", "numpy", "protobuf", "newspaper3k", "lxml_html_clean"]
# The target: this many times as fast as the faster of tiktoken and tokenizers.
BAR = 3
ONE_CORE = {"TOKENIZERS_PARALLELISM": "false", "RAYON_NUM_THREADS": "1", "OMP_NUM_THREADS": "1"}


def ours(*arguments):
    """Runs the example and returns the numbers it prints."""
    binary = pathlib.Path(os.environ.get("CARGO_TARGET_DIR", ROOT / "target")) / "release" / "examples" / "text_speed"
    done = subprocess.run([binary, *map(str, arguments)], capture_output=True, text=True)
    if done.returncode:
        sys.exit(f"text_speed {arguments[0]}: {done.stderr}")
    return [float(number) for number in done.stdout.split()]


def read_ids(path):
    import numpy as np

    ids = np.fromfile(path, dtype="<i4")
    ends = np.flatnonzero(ids == -1)
    return [ids[start:end].tolist() for start, end in zip([0, *(ends[:-1] + 1)], ends, strict=False)]


def corpora():
    """The pages, and two sets of texts: articles (as people wrote them) and the pages' source (as machines do)."""
    folder = DATA / "text-html"
    truth = json.loads((folder / "article-extraction-benchmark" / "ground-truth.json").read_text())
    articles = [entry["articleBody"].replace("\0", "") for entry in truth.values()]
    packed = sorted((folder / "article-extraction-benchmark").glob("*.html.gz"))
    pages = [gzip.decompress(path.read_bytes()).replace(b"\0", b"") for path in packed]
    source = [page.decode("utf-8", errors="replace") for page in pages]
    (WORK / "pages").write_bytes(b"\0".join(pages))
    for name, texts in (("articles", articles), ("source", source)):
        (WORK / name).write_text("\0".join(texts), newline="")
    return pages, {"articles": articles, "page source": source}


def timed(texts, encode):
    started = time.process_time()
    ids = [encode(text) for text in texts]
    seconds = time.process_time() - started
    return sum(len(text.encode()) for text in texts) / seconds / 1e6, ids


def compare_gpt2(sets, rounds):
    import tiktoken
    import tokenizers
    from tiktoken.load import data_gym_to_mergeable_bpe_ranks

    vocabulary, merges = DATA / "text-bpe" / "encoder.json", DATA / "text-bpe" / "vocab.bpe"
    ranks = data_gym_to_mergeable_bpe_ranks(str(merges), str(vocabulary))
    pattern = r"""'(?:[sdmt]|ll|ve|re)| ?\p{L}++| ?\p{N}++| ?[^\s\p{L}\p{N}]++|\s++$|\s+(?!\S)|\s"""
    gpt2 = tiktoken.Encoding("gpt2", pat_str=pattern, mergeable_ranks=ranks, special_tokens={})
    hugging_face = tokenizers.ByteLevelBPETokenizer(str(vocabulary), str(merges))
    print(
        f"GPT-2, MB per second of CPU time, one core (tiktoken {tiktoken.__version__}, tokenizers {tokenizers.__version__}; median of {rounds})"
    )
    for name, texts in sets.items():
        file = WORK / ("articles" if name == "articles" else "source")
        speeds = {"tiktoken": [], "tokenizers": [], "forebay, first pass": [], "forebay, words seen": []}
        for _ in range(rounds):
            speed, theirs = timed(texts, gpt2.encode_ordinary)
            speeds["tiktoken"].append(speed)
            speed, others = timed(texts, lambda text: hugging_face.encode(text).ids)
            speeds["tokenizers"].append(speed)
            first, again, _ = ours("gpt2", vocabulary, merges, file, WORK / "ids")
            speeds["forebay, first pass"].append(first)
            speeds["forebay, words seen"].append(again)
        mine = read_ids(WORK / "ids")
        size = sum(len(text.encode()) for text in texts) / 1e6
        print(f"  {name}: {len(texts)} texts, {size:.2f} MB, {sum(map(len, theirs))} tokens")
        print(f"    ids equal to tiktoken's: {mine == theirs}, to tokenizers': {mine == others}")
        medians = {tool: statistics.median(found) for tool, found in speeds.items()}
        best = max(medians["tiktoken"], medians["tokenizers"])
        for tool, median in medians.items():
            print(f"    {tool:20} {median:8.1f}   {median / best:6.2f} x the faster of the two")
        ratio = medians["forebay, words seen"] / best
        print(f"    ratio: {ratio:.2f}, {'holds' if ratio >= BAR else 'MISSED'} (bar {BAR})")
        if mine != theirs or mine != others:
            sys.exit("ids differ")


def compare_files(sets):
    """Tokenizer files of other kinds, trained on the articles."""
    import sentencepiece
    import tokenizers
    from tokenizers import decoders, models, normalizers, pre_tokenizers, trainers

    texts = (
        sets["articles"]
        + sets["page source"][:10]
        + [
            "",
            " ",
            "  two  spaces ",
            "na\u00efve \uff21\uff22 \u2460 \ufb01n \u1e9b\u0323",
            "\U0001f642 unknown \u5b57\u5b57 \u0e33",
            "tab\tnewline\n\n\u00a0",
            "<s> special </s>",
            "x" * 300,
        ]
    )
    texts = [text.replace("\0", "") for text in texts]
    (WORK / "mixed").write_text("\0".join(texts), newline="")
    lines = WORK / "lines"
    lines.write_text("\n".join(line for text in sets["articles"] for line in text.split("\n") if line.strip()))

    def check(name, kind, file, encode):
        speed, theirs = timed(texts, encode)
        _first, again, _ = ours(kind, file, WORK / "mixed", WORK / "ids")
        mine = read_ids(WORK / "ids")
        wrong = [place for place, (one, other) in enumerate(zip(mine, theirs, strict=False)) if one != other]
        print(f"  {name:46} {'equal' if mine == theirs else 'DIFFERENT'}   {again:7.1f} MB/s, theirs {speed:.1f}")
        if mine != theirs:
            place = wrong[0] if wrong else 0
            at = next((n for n, (a, b) in enumerate(zip(mine[place], theirs[place], strict=False)) if a != b), -1)
            print(
                "    text",
                place,
                repr(texts[place][:60]),
                "token",
                at,
                mine[place][at : at + 8],
                theirs[place][at : at + 8],
            )
        return mine == theirs

    print("other tokenizer files, ids beside those of the tool that made them")
    good = True
    for model in ("unigram", "bpe"):
        for options in (
            {},
            {"byte_fallback": True},
            {"normalization_rule_name": "identity", "remove_extra_whitespaces": False, "add_dummy_prefix": False},
            {"user_defined_symbols": ["<sep>", "the", "</div>"]},
            {"treat_whitespace_as_suffix": True},
            {"split_by_whitespace": False},
        ):
            label = ",".join(f"{key}={value}" for key, value in options.items()) or "as it comes"
            prefix = WORK / f"sp-{model}-{len(label)}"
            sentencepiece.SentencePieceTrainer.train(
                input=str(lines),
                model_prefix=str(prefix),
                model_type=model,
                vocab_size=2000,
                minloglevel=2,
                max_sentence_length=100000,
                character_coverage=0.999,
                **options,
            )
            processor = sentencepiece.SentencePieceProcessor(model_file=f"{prefix}.model")
            good &= check(f"SentencePiece {model}, {label}"[:60], "sentencepiece", f"{prefix}.model", processor.encode)

    def trained(name, tokenizer, trainer):
        nonlocal good
        tokenizer.train([str(lines)], trainer)
        file = WORK / f"{name}.json"
        tokenizer.save(str(file))
        # As it comes out of the file: its reader rounds scores, which decides between cuts of equal score.
        tokenizer = tokenizers.Tokenizer.from_file(str(file))
        encode = lambda text: tokenizer.encode(text, add_special_tokens=False).ids  # noqa: E731
        good &= check(f"Hugging Face {name}", "hugging-face", file, encode)

    bytes_all = pre_tokenizers.ByteLevel.alphabet()
    for name, splitter in (
        ("byte-level", pre_tokenizers.ByteLevel(add_prefix_space=True)),
        (
            "digits, byte-level",
            pre_tokenizers.Sequence([pre_tokenizers.Digits(True), pre_tokenizers.ByteLevel(add_prefix_space=False)]),
        ),
        ("llama-3 pattern", split_pattern(r"\p{N}{1,3}")),
        ("qwen-2 pattern", split_pattern(r"\p{N}")),
    ):
        tokenizer = tokenizers.Tokenizer(models.BPE(ignore_merges=name == "llama-3 pattern"))
        tokenizer.pre_tokenizer = splitter
        if name == "qwen-2 pattern":
            tokenizer.normalizer = normalizers.NFC()
        trained(
            name,
            tokenizer,
            trainers.BpeTrainer(
                vocab_size=3000, initial_alphabet=bytes_all, special_tokens=["<s>", "</s>"], show_progress=False
            ),
        )
    pieces = [f"<0x{byte:02X}>" for byte in range(256)]
    tokenizer = tokenizers.Tokenizer(models.BPE(unk_token="<unk>", byte_fallback=True, fuse_unk=True))
    tokenizer.normalizer = normalizers.Sequence([normalizers.Prepend("\u2581"), normalizers.Replace(" ", "\u2581")])
    trained(
        "llama-2 style",
        tokenizer,
        trainers.BpeTrainer(
            vocab_size=1500, special_tokens=["<unk>", "<s>", "</s>", *pieces], show_progress=False, max_token_length=16
        ),
    )
    for scheme in ("always", "first", "never"):
        tokenizer = tokenizers.Tokenizer(models.BPE(unk_token="<unk>", fuse_unk=scheme == "first"))
        tokenizer.pre_tokenizer = pre_tokenizers.Metaspace(prepend_scheme=scheme)
        trained(
            f"metaspace {scheme}",
            tokenizer,
            trainers.BpeTrainer(
                vocab_size=1500, special_tokens=["<unk>", "<s>"], limit_alphabet=60, show_progress=False
            ),
        )
    charsmap = sentencepiece_charsmap(WORK / f"sp-unigram-{len('as it comes')}.model")
    tokenizer = tokenizers.Tokenizer(models.Unigram())
    tokenizer.normalizer = normalizers.Sequence(
        [normalizers.Precompiled(charsmap), normalizers.Replace(tokenizers.Regex(" {2,}"), " ")]
    )
    tokenizer.pre_tokenizer = pre_tokenizers.Metaspace()
    tokenizer.decoder = decoders.Metaspace()
    trained(
        "unigram, precompiled table",
        tokenizer,
        trainers.UnigramTrainer(
            vocab_size=2000, special_tokens=["<unk>", "<s>", "</s>"], unk_token="<unk>", show_progress=False
        ),
    )
    if not good:
        sys.exit("ids differ")


def split_pattern(digits):
    import tokenizers
    from tokenizers import pre_tokenizers

    pattern = (
        r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|"
        + digits
        + r"| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"
    )
    return pre_tokenizers.Sequence(
        [
            pre_tokenizers.Split(tokenizers.Regex(pattern), "isolated"),
            pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False),
        ]
    )


def sentencepiece_charsmap(file):
    from sentencepiece import sentencepiece_model_pb2

    model = sentencepiece_model_pb2.ModelProto()
    model.ParseFromString(pathlib.Path(file).read_bytes())
    return model.normalizer_spec.precompiled_charsmap


def compare_articles(pages):
    import newspaper

    def extract(page):
        article = newspaper.Article("http://example.invalid/", fetch_images=False)
        article.set_html(page)
        article.parse()
        return article.text

    some = pages[:: max(1, len(pages) // 30)]
    started = time.process_time()
    for page in some:
        extract(page)
    theirs = sum(map(len, some)) / (time.process_time() - started) / 1e6
    (speed,) = ours("article", WORK / "pages", WORK / "extracted")
    print(
        f"articles of pages, MB per second of CPU time, one core: newspaper3k {theirs:.2f} ({len(some)} pages), forebay {speed:.1f}: {speed / theirs:.1f} x"
    )


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=3)
    rounds = parser.parse_args().rounds
    os.environ.update(ONE_CORE)
    WORK.mkdir(parents=True, exist_ok=True)
    python = VENV / "bin" / "python"
    if pathlib.Path(sys.prefix).resolve() != VENV.resolve():
        if not python.exists():
            subprocess.run([sys.executable, "-m", "venv", VENV], check=True)
            subprocess.run([python, "-m", "pip", "install", "--quiet", *PACKAGES], check=True)
        subprocess.run(
            ["cargo", "build", "--release", "--quiet", "-p", "forebay-codec", "--example", "text_speed"],
            cwd=ROOT,
            check=True,
        )
        os.execv(python, [str(python), __file__, *sys.argv[1:]])
    os.sched_setaffinity(0, {max(os.sched_getaffinity(0))})
    pages, sets = corpora()
    compare_gpt2(sets, rounds)
    compare_files(sets)
    compare_articles(pages)


if __name__ == "__main__":
    main()
