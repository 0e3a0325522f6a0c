"""How `mindpulse compare` shows what was found.

words     sentences and tables, in two languages
chart     the curves in the terminal
figures   curves, difference and warping as SVG, drawn with lines
page      one HTML or Markdown file
"""
