// What circuits take of dagre; benchmarks/vendor_bundles.py makes the file in mbsfmu/view/assets of it.
export { Graph, layout } from "@dagrejs/dagre";
