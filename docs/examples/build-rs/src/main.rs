//! Blurs a picture with the kernels that `build.rs` made.

mod cuda;
mod soften;

use cuda::{Context, Memory};
use soften::Soften;

fn main() -> Result<(), cuda::Error> {
    let picture: Vec<f32> = (0..soften::WIDTH * soften::HEIGHT).map(|i| (i % 7) as f32 / 7.0).collect();
    let context = Context::new()?;
    let soften = Soften::new(&context)?;
    let workspace = Memory::new(&context, Soften::workspace_bytes())?;
    let (input, output) = (Memory::of(&context, &picture)?, Memory::of(&context, &picture)?);
    for strength in [0.0, 1.0] {
        soften.run(&workspace, &input, &output, strength)?;
        let soft = output.read(picture.len())?;
        println!("at strength {strength}: {}", soft[soft.len() / 2]);
    }
    match soften.run(&workspace, &input, &output, 2.0) {
        Err(cuda::Error::PARAM) => println!("a strength of 2 is refused"),
        other => other?,
    }
    Ok(())
}
