"""The training health report: one set of values, written as HTML, Markdown or JSON.

collect   run folder -> data          data      the values, the same for all formats
scalar    a curve and its figures     bins      rows on a grid of steps
history   alerts and actions          snapshots attention maps
verdict   healthy or not              words     texts in English and Chinese
html      first_screen figures tables, drawn by curve heat maps timeline over
          plot markup png colour scales downsample layers
markdown  as_json                     the other formats
"""
