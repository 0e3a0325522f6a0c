"""What `mindpulse vscode` writes, and how it gets into files that people have edited."""
