//! Pipelines on a GPU: with buffers of the host, and on streams and memory of the caller. Without a GPU every test here says
//! that it was skipped.

use std::sync::Arc;
use std::thread;

use warploom::DeviceMemoryError;
use warploom::codegen::ir::Role;
use warploom::interp::compare::{Tolerance, compare};
use warploom::lang::{Param, Type};
use warploom::prelude::*;
use warploom::runtime::Gpu;
use warploom::runtime::cuda::sys::{CUgraphInstantiate_flags, CUstreamCaptureMode};
use warploom::runtime::cuda::{CudaContext, CudaSlice, CudaStream};
use warploom::runtime::testing::{self, Leaked};
use warploom::schedule::Schedule;
use warploom::search::Options;
use warploom::tune::cache::Cache;

const WIDTH: i64 = 517;
const HEIGHT: i64 = 259;

fn blur() -> Pipeline {
    let (x, y) = vars!(x, y);
    let edge = Input::f32("input", 2).repeat_edge();
    let gain = Param::f32("gain");
    let row = func("row", (x, y), edge.at((x - 1, y)) + edge.at((x, y)) + edge.at((x + 1, y)));
    let blur = func("blur", (x, y), gain.expr() * (row.at((x, y - 1)) + row.at((x, y)) + row.at((x, y + 1))));
    Pipeline::new("blur", [blur]).expect("it is right")
}

/// What a blur took away, added once more.
fn sharpen() -> Pipeline {
    let (x, y) = vars!(x, y);
    let (image, blurred) = (Input::f32("image", 2), Input::f32("blurred", 2));
    let sharp = func("sharp", (x, y), 2.0 * image.at((x, y)) - blurred.at((x, y)));
    Pipeline::new("sharpen", [sharp]).expect("it is right")
}

/// An image with interleaved channels as two outputs, one of them with two values.
fn separate() -> Pipeline {
    let (x, y) = vars!(x, y);
    let rgb = Input::u8("rgb", 3).stored([2, 0, 1]);
    let pair = func("pair", (x, y), (rgb.at((x, y, 0)), rgb.at((x, y, 1)).cast(Type::I32) + x));
    let blue = func("blue", (x, y), rgb.at((x, y, 2)).cast(Type::F32) * 0.5);
    Pipeline::new("separate", [pair, blue]).expect("it is right")
}

fn whole() -> Region {
    Region::of_extents(&[WIDTH, HEIGHT])
}

fn points() -> usize {
    (WIDTH * HEIGHT) as usize
}

fn image(region: &Region, frame: i64) -> Buffer {
    Buffer::from_fn(region.clone(), |at| ((3 * at[0] + 5 * at[1] + 7 * frame) % 251) as f32)
        .expect("it is small")
}

fn samples(buffer: &Buffer) -> &[f32] {
    buffer.as_slice::<f32>().expect("it holds f32")
}

fn schedule(pipeline: &Pipeline, device: &Device, request: Realisation) -> Autoscheduled {
    let options = Options { samples: 2, beam: 4, passes: 2, ..Options::default() };
    pipeline.autoschedule_with(device, request, &options).expect("it is legal")
}

fn blur_request(pipeline: &Pipeline) -> Realisation {
    Realisation::new(pipeline).input("input", whole()).output("blur", whole()).param("gain", 0.125f32)
}

fn scheduled_blur(device: &Device) -> Autoscheduled {
    let pipeline = blur();
    schedule(&pipeline, device, blur_request(&pipeline))
}

fn scheduled_sharpen(device: &Device) -> Autoscheduled {
    let pipeline = sharpen();
    let request = Realisation::new(&pipeline).input("image", whole()).input("blurred", whole());
    schedule(&pipeline, device, request.output("sharp", whole()))
}

fn agree(found: &Buffer, expected: &Buffer) {
    let tolerance = Tolerance { abs: 1e-3, rel: 1e-5, ..Tolerance::default() };
    let comparison = compare(found, expected, &tolerance).expect("they have one shape");
    assert!(comparison.passed, "{comparison:?}");
}

/// Compares what lies in memory with what the reference gives.
fn agree_with(found: Vec<f32>, expected: &Buffer) {
    agree(&Buffer::from_vec(expected.region().clone(), found).expect("it has the size"), expected);
}

fn blurred(image: &Buffer, gain: f32) -> Buffer {
    let pipeline = blur();
    let evaluation = Evaluation::new(&pipeline).input("input", image).param("gain", gain);
    evaluation.output("blur", image.region().clone()).run().expect("it can be evaluated").remove(0)
}

/// A stream of a caller, with a context of its own.
fn stream(test: &str) -> Option<Arc<CudaStream>> {
    testing::gpu(test)?;
    let context = CudaContext::new(0).expect("there is a GPU");
    Some(context.new_stream().expect("there is room"))
}

fn poisoned(stream: &Arc<CudaStream>) -> CudaSlice<f32> {
    stream.clone_htod(&vec![f32::NAN; points()]).expect("there is room")
}

/// Memory that a graph may use.
fn leaked(stream: &Arc<CudaStream>) -> Leaked<f32> {
    Leaked::new(stream, &vec![f32::NAN; points()]).expect("there is room")
}

fn launch_leaked(
    compiled: &Compiled,
    stream: &CudaStream,
    from: &Leaked<f32>,
    to: &Leaked<f32>,
) -> Result<(), RunError> {
    let input = DeviceInput::of_bytes(Type::F32, whole(), from.input());
    compiled.launch(stream, &[input], &mut [DeviceOutput::of_bytes(Type::F32, whole(), to.output())])
}

fn launch(
    compiled: &Compiled,
    stream: &CudaStream,
    inputs: &[&CudaSlice<f32>],
    output: &mut CudaSlice<f32>,
) -> Result<(), RunError> {
    let inputs: Vec<_> = inputs.iter().map(|input| DeviceInput::new(whole(), input.as_view())).collect();
    compiled.launch(stream, &inputs, &mut [DeviceOutput::new(whole(), output.as_view_mut())])
}

#[test]
fn a_blur_runs_on_buffers_of_the_host() {
    let Some(gpu) = testing::gpu("a_blur_runs_on_buffers_of_the_host") else { return };
    let mut compiled = scheduled_blur(gpu.device()).compile().expect("there is a GPU");
    for (extents, gain) in
        [([WIDTH, HEIGHT], 0.125f32), ([301, 33], 0.125), ([301, 33], 2.0), ([WIDTH, HEIGHT], 2.0)]
    {
        let image = image(&Region::of_extents(&extents), 0);
        compiled.set_param("gain", gain).expect("it is a Param");
        let found = compiled.run(&[&image]).expect("it runs");
        agree(&found[0], &blurred(&image, gain));
    }
}

#[test]
fn pipelines_are_chained_on_the_callers_stream() {
    let Some(stream) = stream("pipelines_are_chained_on_the_callers_stream") else { return };
    let backend = Backend::on(&stream).expect("there is a GPU");
    let Backend::Gpu(gpu) = &backend else { panic!("it is one") };
    let mut blur = scheduled_blur(gpu.device()).compile_for(backend.clone()).expect("it can be compiled");
    let sharpen = scheduled_sharpen(gpu.device()).compile_for(backend.clone()).expect("it can be compiled");

    let image = image(&whole(), 0);
    let source = stream.clone_htod(samples(&image)).expect("there is room");
    let mut soft = poisoned(&stream);
    let gains = [0.125f32, 0.5, 0.5, 0.0];
    let mut results: Vec<_> = gains.iter().map(|_| poisoned(&stream)).collect();
    for (gain, sharp) in gains.into_iter().zip(&mut results) {
        blur.set_param("gain", gain).expect("it is a Param");
        launch(&blur, &stream, &[&source], &mut soft).expect("it fits");
        launch(&sharpen, &stream, &[&source, &soft], sharp).expect("it fits");
    }
    // What waits to run is waited for.
    drop((blur, sharpen));
    for (gain, sharp) in gains.into_iter().zip(&results) {
        let soft = blurred(&image, gain);
        let expected =
            samples(&image).iter().zip(samples(&soft)).map(|(image, soft)| 2.0 * image - soft).collect();
        let expected = Buffer::from_vec::<f32>(whole(), expected).expect("it has the size");
        agree_with(stream.clone_dtoh(sharp).expect("it was written"), &expected);
    }
}

#[test]
fn host_and_device_take_turns() {
    let Some(stream) = stream("host_and_device_take_turns") else { return };
    let gpu = Gpu::on(&stream).expect("there is a GPU");
    let mut compiled =
        scheduled_blur(gpu.device()).compile_for(Backend::Gpu(Arc::new(gpu))).expect("it compiles");
    let (first, second) = (image(&whole(), 1), image(&whole(), 2));
    let source = stream.clone_htod(samples(&first)).expect("there is room");
    let mut output = poisoned(&stream);
    for gain in [0.5f32, 0.25] {
        compiled.set_param("gain", gain).expect("it is a Param");
        launch(&compiled, &stream, &[&source], &mut output).expect("it fits");
        agree(&compiled.run(&[&second]).expect("it runs")[0], &blurred(&second, gain));
        agree_with(stream.clone_dtoh(&output).expect("it was written"), &blurred(&first, gain));
    }
    // Another size, and back.
    let part = Region::of_extents(&[100, 50]);
    let small = image(&part, 3);
    let from = stream.clone_htod(samples(&small)).expect("there is room");
    let input = DeviceInput::new(part.clone(), from.as_view());
    let to = DeviceOutput::new(part.clone(), output.slice_mut(..5000));
    compiled.launch(&stream, &[input], &mut [to]).expect("it fits");
    let found = stream.clone_dtoh(&output.slice(..5000)).expect("it was written");
    agree_with(found, &blurred(&small, 0.25));
    launch(&compiled, &stream, &[&source], &mut output).expect("it fits");
    agree_with(stream.clone_dtoh(&output).expect("it was written"), &blurred(&first, 0.25));
}

#[test]
fn other_streams_wait_for_a_launch_and_it_for_them() {
    let Some(stream) = stream("other_streams_wait_for_a_launch_and_it_for_them") else { return };
    let other = stream.context().new_stream().expect("there is room");
    assert!(stream.context().is_managing_stream_synchronization());
    let backend = Backend::on(&stream).expect("there is a GPU");
    assert!(stream.context().is_event_tracking(), "it stays as it was");
    let device = Device::detect_or("h200").expect("it is known");
    let compiled = scheduled_blur(&device).compile_for(backend).expect("it can be compiled");
    let mut source = poisoned(&other);
    let mut output = poisoned(&other);
    let mut copies: Vec<_> = (0..6).map(|_| poisoned(&other)).collect();
    for (frame, copy) in copies.iter_mut().enumerate() {
        // Neither may begin before the one before has ended, though they are on different streams.
        let frame = image(&whole(), frame as i64);
        other.memcpy_htod(samples(&frame), &mut source).expect("it fits");
        launch(&compiled, &stream, &[&source], &mut output).expect("it fits");
        other.memcpy_dtod(&output, copy).expect("it fits");
    }
    for (frame, copy) in copies.iter().enumerate() {
        let expected = blurred(&image(&whole(), frame as i64), 0.125);
        agree_with(other.clone_dtoh(copy).expect("it was written"), &expected);
    }
}

#[test]
fn launches_are_captured_in_the_callers_graph() {
    if testing::gpu("launches_are_captured_in_the_callers_graph").is_none() {
        return;
    }
    // A context with no stream but this keeps no events, which could not be captured.
    let stream = CudaContext::new(0).expect("there is a GPU").per_thread_stream();
    let device = Device::detect_or("h200").expect("it is known");
    let backend = Backend::on(&stream).expect("there is a GPU");
    let mut compiled = scheduled_blur(&device).compile_for(backend).expect("it can be compiled");
    let mut source = leaked(&stream);
    let (soft, softer) = (leaked(&stream), leaked(&stream));
    let (borrowed, mut dropped) = (poisoned(&stream), poisoned(&stream));
    stream.synchronize().expect("it was copied");
    stream
        .begin_capture(CUstreamCaptureMode::CU_STREAM_CAPTURE_MODE_THREAD_LOCAL)
        .expect("it can be captured");
    launch_leaked(&compiled, &stream, &source, &soft).expect("there are kernels");
    launch_leaked(&compiled, &stream, &soft, &softer).expect("there are kernels");
    let other_size = {
        let part = Region::of_extents(&[10, 10]);
        let input = DeviceInput::new(part.clone(), borrowed.slice(..100));
        compiled.launch(&stream, &[input], &mut [DeviceOutput::new(part, dropped.slice_mut(..100))])
    };
    let outlived = launch(&compiled, &stream, &[&borrowed], &mut dropped);
    let graph =
        stream.end_capture(CUgraphInstantiate_flags(0)).expect("it ended").expect("there are launches");
    assert!(
        matches!(other_size, Err(RunError::Memory(DeviceMemoryError::Capturing { .. }))),
        "{other_size:?}"
    );
    let outlived = outlived.expect_err("the graph would not keep it").to_string();
    assert!(outlived.contains("the graph would not keep the memory of `input`"), "{outlived}");
    drop((borrowed, dropped));
    for frame in 0..2 {
        let image = image(&whole(), frame);
        source.write(samples(&image)).expect("it fits");
        graph.launch().expect("it was captured");
        let once = blurred(&image, 0.125);
        agree_with(soft.read().expect("it was written"), &once);
        agree_with(softer.read().expect("it was written"), &blurred(&once, 0.125));
        // Another Param is for what comes next, and not for the graph.
        compiled.set_param("gain", 1f32).expect("it is a Param");
        launch_leaked(&compiled, &stream, &source, &soft).expect("it fits");
        agree_with(soft.read().expect("it was written"), &blurred(&image, 1.0));
    }
    drop(graph);
}

#[test]
fn memory_lies_as_the_pipeline_says() {
    let Some(stream) = stream("memory_lies_as_the_pipeline_says") else { return };
    let pipeline = separate();
    let (colours, plane) = (Region::of_extents(&[63, 21, 3]), Region::of_extents(&[63, 21]));
    let request = Realisation::new(&pipeline).input("rgb", colours.clone());
    let request = request.output("pair", plane.clone()).output("blue", plane.clone());
    let device = Device::detect_or("h200").expect("it is known");
    let scheduled = schedule(&pipeline, &device, request);
    let image =
        Buffer::from_fn(colours.clone(), |at| (at[0] + 2 * at[1] + 80 * at[2]) as u8).expect("it is small");
    let expected = scheduled.compile_for(Backend::Reference).expect("nothing is to do").run(&[&image]);
    let expected = expected.expect("it can be evaluated");

    let interleaved = image.reordered(&[2, 0, 1]).expect("it is an order");
    let interleaved = interleaved.as_slice::<u8>().expect("it holds u8");
    let source = stream.clone_htod(interleaved).expect("there is room");
    let mut red = stream.clone_htod(&vec![255u8; 63 * 21]).expect("there is room");
    let mut green = stream.clone_htod(&vec![-1i32; 63 * 21]).expect("there is room");
    let mut blue = stream.clone_htod(&vec![f32::NAN; 63 * 21]).expect("there is room");
    let compiled = scheduled.compile_for(Backend::on(&stream).expect("it is there")).expect("it compiles");
    let launched = compiled.launch(
        &stream,
        &[DeviceInput::new(colours, source.as_view())],
        &mut [
            DeviceOutput::new(plane.clone(), red.as_view_mut()),
            DeviceOutput::new(plane.clone(), green.as_view_mut()),
            DeviceOutput::new(plane, blue.as_view_mut()),
        ],
    );
    launched.expect("it fits");
    assert_eq!(Some(&*stream.clone_dtoh(&red).expect("it was written")), expected[0].as_slice::<u8>());
    assert_eq!(Some(&*stream.clone_dtoh(&green).expect("it was written")), expected[1].as_slice::<i32>());
    assert_eq!(Some(&*stream.clone_dtoh(&blue).expect("it was written")), expected[2].as_slice::<f32>());
}

#[test]
fn wrong_memory_is_refused() {
    let Some(stream) = stream("wrong_memory_is_refused") else { return };
    let device = Device::detect_or("h200").expect("it is known");
    let compiled =
        scheduled_blur(&device).compile_for(Backend::on(&stream).expect("it is there")).expect("it compiles");
    let source = poisoned(&stream);
    let mut output = poisoned(&stream);
    let bytes = stream.clone_htod(&vec![0u8; points()]).expect("there is room");
    let refused = compiled.launch(
        &stream,
        &[DeviceInput::new(whole(), bytes.as_view())],
        &mut [DeviceOutput::new(whole(), output.as_view_mut())],
    );
    let refused = refused.expect_err("it is no f32").to_string();
    assert_eq!(refused, "the input `input` is f32, but the device memory holds u8");
    let refused = compiled.launch(
        &stream,
        &[DeviceInput::new(whole(), source.as_view())],
        &mut [DeviceOutput::new(whole(), output.slice_mut(1..))],
    );
    let refused = refused.expect_err("one is missing").to_string();
    assert!(refused.contains("the output `blur` over [0, 517) x [0, 259) takes 535612 bytes"), "{refused}");
    let elsewhere = poisoned(Gpu::new(0).expect("it is there").stream());
    let refused = launch(&compiled, &stream, &[&elsewhere], &mut output).expect_err("it has another context");
    assert!(refused.to_string().contains("`input` belongs to another CudaContext"), "{refused}");
}

#[test]
fn device_memory_needs_kernels_on_a_gpu() {
    let Some(stream) = stream("device_memory_needs_kernels_on_a_gpu") else { return };
    let device = Device::preset("h200").expect("it is known");
    for backend in [Backend::Simulator(device.clone()), Backend::Reference] {
        let compiled = scheduled_blur(&device).compile_for(backend).expect("it can be built");
        let refused = compiled.launch(&stream, &[], &mut []).expect_err("it is on no GPU");
        assert!(matches!(refused, RunError::Memory(DeviceMemoryError::NoGpu { .. })), "{refused}");
    }
}

#[test]
fn own_and_borrowed_streams_live_side_by_side() {
    let Some(stream) = stream("own_and_borrowed_streams_live_side_by_side") else { return };
    let own = Arc::new(Gpu::new(0).expect("there is a GPU"));
    let scheduled = scheduled_blur(own.device());
    let mine = scheduled.compile_for(Backend::Gpu(own.clone())).expect("it compiles");
    let theirs = scheduled.compile_for(Backend::on(&stream).expect("it is there")).expect("it compiles");
    let image = image(&whole(), 4);
    let expected = blurred(&image, 0.125);
    // Memory on the stream of a Gpu is as good as any other.
    let streams = [own.stream(), &stream];
    let sources = streams.map(|stream| stream.clone_htod(samples(&image)).expect("there is room"));
    let mut outputs = streams.map(poisoned);
    for _ in 0..3 {
        launch(&mine, own.stream(), &[&sources[0]], &mut outputs[0]).expect("it fits");
        launch(&theirs, &stream, &[&sources[1]], &mut outputs[1]).expect("it fits");
    }
    drop(mine);
    for (stream, output) in streams.into_iter().zip(&outputs) {
        agree_with(stream.clone_dtoh(output).expect("it was written"), &expected);
    }
    agree(&theirs.run(&[&image]).expect("it runs")[0], &expected);
}

#[test]
fn the_second_time_nothing_is_compiled() {
    let Some(gpu) = testing::gpu("the_second_time_nothing_is_compiled") else { return };
    let folder = std::env::temp_dir().join(format!("warploom-on-gpu-{}", std::process::id()));
    let cache = Cache::at(&folder);
    let (pipeline, scheduled, gpu) = (blur(), scheduled_blur(gpu.device()), Arc::new(gpu));
    let compile = |cache: Option<&Cache>| {
        let request = blur_request(&pipeline);
        let backend = Backend::Gpu(gpu.clone());
        Compiled::with_cache(pipeline.clone(), scheduled.schedule().clone(), request, backend, cache.cloned())
    };
    let image = image(&whole(), 5);
    let expected = blurred(&image, 0.125);
    for (cache, found) in [(Some(&cache), false), (Some(&cache), true), (None, false)] {
        let compiled = compile(cache).expect("it compiles");
        assert_eq!(compiled.is_from_cache(), found);
        agree(&compiled.run(&[&image]).expect("it runs")[0], &expected);
    }
    assert_eq!(cache.info().expect("it can be read").entries, 1);
    std::fs::remove_dir_all(folder).expect("it is ours");
}

/// A blur whose rows are in global memory between its two kernels.
fn blur_in_two_kernels(backend: Backend, cache: Option<Cache>) -> Compiled {
    let pipeline = blur();
    let tile = "block x 64, y 4 threads x 64, y 4";
    let text = format!("blur inline input.repeat_edge\n  kernel row {tile}\n  kernel blur {tile}\n");
    let schedule = Schedule::parse(&text, &pipeline).expect("it is well formed");
    let request = blur_request(&pipeline);
    let compiled = Compiled::with_cache(pipeline, schedule, request, backend, cache).expect("it compiles");
    let program = compiled.program().expect("it was built");
    assert!(program.buffers.values().any(|buffer| buffer.role == Role::Temporary));
    compiled
}

/// Blurs a frame many times in a row on one stream, and compares the last result.
fn blur_often(compiled: &Compiled, stream: &Arc<CudaStream>, frame: i64, gain: f32) {
    let mut compiled = compiled.clone();
    compiled.set_param("gain", gain).expect("it is a Param");
    let image = image(&whole(), frame);
    let source = stream.clone_htod(samples(&image)).expect("there is room");
    let mut output = poisoned(stream);
    for _ in 0..200 {
        launch(&compiled, stream, &[&source], &mut output).expect("it fits");
    }
    agree_with(stream.clone_dtoh(&output).expect("it was written"), &blurred(&image, gain));
}

#[test]
fn two_streams_in_flight_do_not_disturb_each_other() {
    let Some(stream) = stream("two_streams_in_flight_do_not_disturb_each_other") else { return };
    let compiled = blur_in_two_kernels(Backend::on(&stream).expect("it is there"), None);
    let streams = [stream.context().new_stream().expect("there is room"), stream];
    let images = [image(&whole(), 1), image(&whole(), 2)];
    let gains = [0.125f32, 0.5];
    let compiled = gains.map(|gain| {
        let mut own = compiled.clone();
        own.set_param("gain", gain).expect("it is a Param");
        own
    });
    let copied = |number: usize| streams[number].clone_htod(samples(&images[number])).expect("there is room");
    let sources = [copied(0), copied(1)];
    let mut outputs = streams.each_ref().map(poisoned);
    for _ in 0..200 {
        for (number, output) in outputs.iter_mut().enumerate() {
            launch(&compiled[number], &streams[number], &[&sources[number]], output).expect("it fits");
        }
    }
    for (number, output) in outputs.iter().enumerate() {
        let found = streams[number].clone_dtoh(output).expect("it was written");
        agree_with(found, &blurred(&images[number], gains[number]));
    }
}

#[test]
fn threads_share_one_compiled_pipeline() {
    let Some(stream) = stream("threads_share_one_compiled_pipeline") else { return };
    let compiled = blur_in_two_kernels(Backend::on(&stream).expect("it is there"), None);
    thread::scope(|scope| {
        for (frame, gain) in [(1, 0.125f32), (2, 0.5), (3, 1.0), (4, 0.25)] {
            let (compiled, context) = (&compiled, stream.context());
            scope.spawn(move || {
                let own = context.new_stream().expect("there is room");
                blur_often(compiled, &own, frame, gain);
                // On the stream that all threads share, at a size that all of them ask for at once.
                let small = image(&Region::of_extents(&[100, 50]), frame);
                agree(&compiled.run(&[&small]).expect("it runs")[0], &blurred(&small, 0.125));
            });
        }
    });
}

#[test]
fn a_graph_is_replayed_between_eager_launches() {
    if testing::gpu("a_graph_is_replayed_between_eager_launches").is_none() {
        return;
    }
    // Every thread has a stream of its own, though the context has none that keeps events.
    let stream = CudaContext::new(0).expect("there is a GPU").per_thread_stream();
    let compiled = blur_in_two_kernels(Backend::on(&stream).expect("it is there"), None);
    let (mut source, output) = (leaked(&stream), leaked(&stream));
    stream
        .begin_capture(CUstreamCaptureMode::CU_STREAM_CAPTURE_MODE_THREAD_LOCAL)
        .expect("it can be captured");
    launch_leaked(&compiled, &stream, &source, &output).expect("there are kernels");
    let graph =
        stream.end_capture(CUgraphInstantiate_flags(0)).expect("it ended").expect("there are launches");
    let mut replay = |frame| {
        let image = image(&whole(), frame);
        source.write(samples(&image)).expect("it fits");
        graph.launch().expect("it was captured");
        agree_with(output.read().expect("it was written"), &blurred(&image, 0.125));
    };
    thread::scope(|scope| {
        let eager = scope.spawn(|| (1..5).for_each(|frame| blur_often(&compiled, &stream, frame, 0.5)));
        (0..20).for_each(&mut replay);
        eager.join().expect("it agrees");
    });
    // The graph keeps what it needs.
    drop(compiled);
    replay(20);
}

#[test]
fn kernels_of_sixteen_sizes_are_kept() {
    let Some(gpu) = testing::gpu("kernels_of_sixteen_sizes_are_kept") else { return };
    let folder = std::env::temp_dir().join(format!("warploom-sizes-{}", std::process::id()));
    let compiled = blur_in_two_kernels(Backend::Gpu(Arc::new(gpu)), Some(Cache::at(&folder)));
    let run = |width: i64| {
        let image = image(&Region::of_extents(&[width, 20]), width);
        agree(&compiled.run(&[&image]).expect("it runs")[0], &blurred(&image, 0.125));
        compiled.is_from_cache()
    };
    assert!(!(100..116).any(run), "each is compiled");
    assert!(!run(100), "it is still there");
    assert!(!run(116), "one more, instead of the oldest");
    assert!(!run(100), "it was used since");
    assert!(run(101), "this one is loaded again, from the cache");
    std::fs::remove_dir_all(folder).expect("it is ours");
}

/// Memory that starts anywhere: kernels with vectors run where all of it is aligned, others where it is not.
#[test]
fn memory_that_is_not_aligned_is_accessed_element_by_element() {
    let Some(stream) = stream("memory_that_is_not_aligned_is_accessed_element_by_element") else { return };
    let (x, y) = vars!(x, y);
    let input = Input::u8("input", 2);
    let inverse = func("inverse", (x, y), Expr::from(255u8) - input.at((x, y)));
    let pipeline = Pipeline::new("inverse", [inverse]).expect("it is right");
    let picture = Region::of_extents(&[256, 64]);
    let request =
        Realisation::new(&pipeline).input("input", picture.clone()).output("inverse", picture.clone());
    let text = "inverse
  kernel inverse block x 256, y 4
    inverse threads x 16, y 4 serial x 16 unroll vector
";
    let schedule = Schedule::parse(text, &pipeline).expect("it is right");
    let backend = Backend::on(&stream).expect("there is a GPU");
    let compiled = Compiled::new(pipeline, schedule, request, backend).expect("it is legal");
    let bytes: Vec<u8> = (0..256 * 64 + 16).map(|i| (i % 253) as u8).collect();
    let memory = stream.clone_htod(&bytes).expect("there is room");
    for (from, to) in [(0, 0), (16, 0), (1, 0), (0, 3), (8, 4), (0, 0)] {
        let mut found = stream.clone_htod(&vec![0_u8; bytes.len()]).expect("there is room");
        let input = DeviceInput::new(picture.clone(), memory.slice(from..from + 256 * 64));
        let output = DeviceOutput::new(picture.clone(), found.slice_mut(to..to + 256 * 64));
        compiled.launch(&stream, &[input], &mut [output]).expect("it runs from anywhere");
        let found = stream.clone_dtoh(&found).expect("it is there");
        let expected = bytes[from..].iter().map(|byte| 255 - byte).take(256 * 64);
        assert!(found[to..to + 256 * 64].iter().copied().eq(expected), "from {from} to {to}");
        let program = compiled.program().expect("it is on a GPU");
        let text =
            warploom::codegen::printer::PRINTER.print(&program, warploom::codegen::printer::Build::Timing);
        assert_eq!(text.contains("wl_move<16>"), from % 16 == 0 && to % 16 == 0, "from {from} to {to}");
    }
}
