// What the scene takes of three.js; benchmarks/vendor_bundles.py makes the file in mbsfmu/view/assets of it.
export {
  AmbientLight, Box3, BoxGeometry, BufferAttribute, BufferGeometry, CapsuleGeometry, Color, ConeGeometry, CylinderGeometry,
  DirectionalLight, DoubleSide, EdgesGeometry, ExtrudeGeometry, GridHelper, Group, HemisphereLight, Line,
  LineBasicMaterial, LineSegments, Matrix4, Mesh, MeshLambertMaterial, PerspectiveCamera, Quaternion, Scene, Shape,
  SphereGeometry, TubeGeometry, Curve, Vector2, Vector3, WebGLRenderer,
} from "three";
export { OrbitControls } from "three/addons/controls/OrbitControls.js";
