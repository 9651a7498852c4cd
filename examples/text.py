"""Text: web pages to token ids, cut and padded to one length."""

import forebay

forebay.demo_data("nlp", ".", samples=12)  # and a vocabulary that is learned from the pages

pipeline = (
    forebay.Pipeline.files("**/*.html", label=None, field="text")
    .extract_text()
    .tokenize("tokenizer.tiktoken", max_length=128, pad_to=128, pad_token_id=0)
)
for batch in forebay.Loader(pipeline, data="pages/", batch_size=4, shuffle=True, seed=7):
    assert batch["text"].shape == (4, 128) and batch["text"].dtype == "int32"
print("batches of 128 tokens")
