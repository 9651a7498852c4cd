"""Steps that work on text and tokens, with the names of Hugging Face's libraries."""

from __future__ import annotations

import os
from collections.abc import Iterable
from typing import Any, Literal, Self

__all__ = ["TextSteps"]


class TextSteps:
    """The steps of a pipeline that work on text and tokens."""

    __slots__ = ()

    def step(self, op: str, **parameters: Any) -> Self:
        """Add a step by its `op`."""
        raise NotImplementedError

    def extract_text(self, *, charset: str | None = None, max_bytes: int | None = None, **options: Any) -> Self:
        """Extract the text of a web page's article. Each page says its character set unless `charset` does."""
        return self.step("extract_text", charset=charset, max_bytes=max_bytes, **options)

    def tokenize(
        self,
        tokenizer: str | os.PathLike[str] = "bytes",
        *,
        pattern: Literal["gpt2", "cl100k"] | None = None,
        bos_token: str | None = None,
        eos_token: str | None = None,
        max_length: int | None = None,
        pad_to: int | None = None,
        pad_token_id: int | None = None,
        **options: Any,
    ) -> Self:
        """Turn text into token ids, `int32[tokens]`.

        Parameters
        ----------
        tokenizer
            `"bytes"`, or a path: Hugging Face's `tokenizer.json`, SentencePiece's `.model`, a `.tiktoken` file, GPT-2's vocabulary, or a folder.
        pattern
            Pattern of a `.tiktoken` file. By default GPT-2's.
        bos_token, eos_token
            Tokens around each text, by name.
        max_length
            Maximum number of tokens. The rest is cut off.
        pad_to, pad_token_id
            Pad every text to that many tokens, by default with 0; needs a `max_length` that is no larger.
        """
        return self.step(
            "tokenize",
            tokenizer=os.fspath(tokenizer),
            pattern=pattern,
            bos_token=bos_token,
            eos_token=eos_token,
            max_length=max_length,
            pad_to=pad_to,
            pad_token_id=pad_token_id,
            **options,
        )

    def mask_tokens(
        self,
        mask_token_id: int,
        vocab_size: int,
        *,
        mlm_probability: float = 0.15,
        mask_replace_prob: float = 0.8,
        random_replace_prob: float = 0.1,
        special_token_ids: Iterable[int] = (),
        labels: str = "labels",
        **options: Any,
    ) -> Self:
        """Mask tokens for masked language models, as Hugging Face's `DataCollatorForLanguageModeling`.

        The field `labels` has what masked tokens were, and -100 elsewhere. `special_token_ids` are never masked.
        """
        return self.step(
            "mask_tokens",
            mask_token_id=mask_token_id,
            vocab_size=vocab_size,
            mlm_probability=mlm_probability,
            mask_replace_prob=mask_replace_prob,
            random_replace_prob=random_replace_prob,
            special_token_ids=list(special_token_ids),
            labels=labels,
            **options,
        )

    def embed(
        self,
        table: str | os.PathLike[str] | None = None,
        *,
        tensor: str | None = None,
        seed: int | None = None,
        num_embeddings: int | None = None,
        embedding_dim: int | None = None,
        **options: Any,
    ) -> Self:
        """Turn token ids into `float32[tokens, embedding_dim]`, by a `.npy` or `.safetensors` file, or by a random table.

        `tensor` names one of a `.safetensors` file; `seed` and `num_embeddings` are a random table's.
        """
        return self.step(
            "embed",
            table=None if table is None else os.fspath(table),
            tensor=tensor,
            seed=seed,
            num_embeddings=num_embeddings,
            embedding_dim=embedding_dim,
            **options,
        )

    def pack(
        self,
        max_length: int,
        *,
        packing_strategy: str = "wrapped",
        outputs: Iterable[str] = ("position_ids", "segment_ids"),
        pad_token_id: int = 0,
        drop_last: bool = False,
        buffer_tokens: int | None = None,
        **options: Any,
    ) -> Self:
        """Pack token sequences into windows of `max_length` tokens.

        `"wrapped"` puts documents one after another and cuts them wherever a window is full; `"bfd"` keeps each document intact (best fit
        decreasing) and leaves out what it has beyond `max_length`; `"bfd_split"` cuts longer ones into parts first. `outputs` are the fields that
        tell documents apart: `position_ids`, `segment_ids`, `cu_seqlens`, `labels`. The best fit is looked for among `buffer_tokens`. Packing crosses samples, so it is done once: `build` a data
        set with `strategy="packed"` (or a later stage), and load that.
        """
        return self.step(
            "pack",
            max_length=max_length,
            packing_strategy=packing_strategy,
            outputs=list(outputs),
            pad_token_id=pad_token_id,
            drop_last=drop_last,
            buffer_tokens=buffer_tokens,
            **options,
        )
