// A running machine in a cell of a notebook: its page in a frame, whose values go to Python and whose inputs come from there.

export default {
  render({ model, el }) {
    const frame = document.createElement("iframe");
    Object.assign(frame, { title: model.get("title"), srcdoc: model.get("page") });
    Object.assign(frame.style, { width: "100%", height: `${model.get("height")}px`, border: "0" });
    const hear = ({ source, data }) => {
      if (source !== frame.contentWindow || data?.mbsfmu !== "state") return;
      for (const name of ["time", "values", "inputs"]) model.set(name, data[name]);
      model.save_changes();
    };
    const tell = (what, value) => frame.contentWindow?.postMessage({ mbsfmu: what, value }, "*");
    const wanted = () => tell("inputs", model.get("wanted"));
    const signals = () => tell("signals", model.get("signals"));
    window.addEventListener("message", hear);
    model.on("change:wanted", wanted);
    model.on("change:signals", signals);
    el.append(frame);
    return () => {
      window.removeEventListener("message", hear);
      model.off("change:wanted", wanted);
      model.off("change:signals", signals);
    };
  },
};
