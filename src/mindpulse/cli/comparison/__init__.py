"""How `mindpulse compare` shows what was found.

words     sentences and tables, in two languages
figures   curves, difference and warping as SVG
page      one HTML or Markdown file
"""
