"""One file per table or figure of a paper: configuration in; JSON, Markdown and PNG out."""
